// A tree drawn on a canvas as icicle, treemap or sunburst.

import { boxesOf, foldedChildren, isWithin, OTHERS, type Shape } from "./boxes";
import { boxFigure, boxName } from "./boxtext";
import { el } from "./dom";
import { drawBoxes, drawMarks } from "./drawing";
import { REDRAW } from "./medium";
import { boxAt, type Frame, middleOf } from "./shapes";
import type { Tree } from "./tree";

interface Events {
  onhover(node: number, event?: MouseEvent): void;
  onclick(node: number): void;
}

/** A picture; `zoomTo`, `setShape` and `highlight` change what it shows, and `mark` what is outlined in it. */
export function picture(tree: Tree, label: string, events: Events) {
  const base = document.createElement("canvas");
  const frame: Frame = { boxes: [], shape: "icicle", width: 0, height: 0 };
  let [root, hovered, selected] = [0, -1, -1];
  let isRest = false;
  let found: Uint8Array | null = null;
  const boxOf = (node: number) => frame.boxes.find((one) => one.node === node);
  const paint = () => drawMarks(base, element, frame, [[selected, 3], [hovered, 2]].map(([node, width]) => [node > 0 ? boxOf(node) : undefined, width]));
  const draw = () => {
    drawBoxes(base, element, tree, frame, (node) => found !== null && !isWithin(tree, root, found, node));
    paint();
  };
  const lay = () => {
    [frame.width, frame.height] = [element.clientWidth, element.clientHeight];
    if (!frame.width || !frame.height) return;
    frame.boxes = boxesOf(tree, root, isRest, frame.shape, frame.width, frame.height);
    const shown = frame.boxes.filter((one) => one.node >= 0).length;
    element.setAttribute("aria-label",
      `${label}: ${frame.shape} of ${tree.names[root]}, ${tree.amount(tree.areas[root])}, ${shown} parts. The table says the same.`);
    draw();
  };
  const isZoomable = (node: number) => node > 0 || node === OTHERS;
  const element = el("canvas", {
    role: "img", class: "picture",
    onmousemove: (event) => {
      const node = boxAt(frame, event.offsetX, event.offsetY);
      element.style.cursor = isZoomable(node) ? "pointer" : "default";
      events.onhover(node, event);
    },
    onmouseleave: () => events.onhover(-1),
    onclick: (event) => {
      const node = boxAt(frame, event.offsetX, event.offsetY);
      if (node >= 0 || node === OTHERS) events.onclick(node);
    },
  });
  new ResizeObserver(lay).observe(element);
  element.addEventListener(REDRAW, lay);
  return {
    element, events,
    get root() { return root; },
    /** Show a node and the nodes below it; with `isOthers` only those that are shown together otherwise. */
    zoomTo(node: number, isOthers: boolean) { [root, isRest] = [node, isOthers]; lay(); },
    /** Draw the nodes without a mark pale; null for none. */
    highlight(marks: Uint8Array | null) { found = marks; draw(); },
    setShape(shape: Shape) { element.dataset.shape = frame.shape = shape; lay(); },
    /** Outline the node below the pointer, and the selected node. */
    mark(pointed: number, chosen = selected) {
      if (pointed === hovered && chosen === selected) return;
      [hovered, selected] = [pointed, chosen];
      paint();
    },
    /** Return the children of the shown node that are shown together, if they are. */
    others: () => foldedChildren(tree, root),
    /** Describe what stands together. */
    describe(node: number) {
      const box = boxOf(node);
      return box ? `${boxName(tree, box)}: ${boxFigure(tree, box)}. A click shows them.` : "";
    },
    /** Return the middle of a node in pixels of the canvas; null where it is not drawn. For tests. */
    placeOf(node: number) { const box = boxOf(node); return box ? middleOf(frame, box) : null; },
  };
}
