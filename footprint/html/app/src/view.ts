// A tree as a picture and a table that follow each other.

import { choice } from "./choice";
import { el, fill } from "./dom";
import { Grid } from "./grid";
import { KIND_NAMES } from "./kinds";
import { type Legend, legendList } from "./legend";
import { OTHERS, type Shape } from "./boxes";
import { described, Picture } from "./picture";
import type { Store } from "./store";
import { tableTools } from "./tabletools";
import type { Tree } from "./tree";
import { nodeOf, pathOf, sortState } from "./viewstate";

let viewCount = 0;

/** Make the legend of the kinds of memory in a tree. */
export function kindLegend(tree: Tree): Legend {
  return [...new Set(tree.colours.filter((_, node) => tree.areas[node] > 0))].sort((one, other) => one - other).filter((one) => one > 0)
    .map((one) => [one, KIND_NAMES[one]] as const);
}

const SHAPES: readonly (readonly [Shape, string])[] = [["icicle", "Icicle"], ["treemap", "Treemap"], ["sunburst", "Sunburst"]];

/**
 * Show a tree as a picture and a table, or as a table alone.
 *
 * The values `NAME.zoom`, `NAME.others`, `NAME.sort`, `NAME.filter`, `NAME.colours` and `NAME.shape` of the state belong to it.
 */
export function treeView(
  store: Store, name: string, tree: Tree, label: string, legend: Legend, hasPicture = true,
): HTMLElement {
  viewCount += 1;
  const status = el("p", { class: "status", "aria-live": "off" });
  const tip = el("div", { class: "tip", "aria-hidden": "true", hidden: true });
  const crumbs = el("nav", { class: "crumbs", "aria-label": `${label}: zoomed to` });
  const hint = hasPicture ? "Point at a part to read it; click it, or press Enter in the table, to zoom in." : "";
  let selected = -1;

  const hover = (node: number, event?: MouseEvent) => {
    picture.mark(node);
    grid.hover(node);
    const text = node === OTHERS ? picture.describe(node) : node >= 0 ? described(tree, node) : "";
    fill(status, text || (selected >= 0 ? described(tree, selected) : hint));
    showTip(tip, picture.element, text, event);
  };
  const select = (node: number) => {
    selected = node;
    picture.mark(-1, node);
    fill(status, described(tree, node));
  };
  const zoom = (node: number, isRest = false) => {
    // A leaf is shown within its parent.
    const target = tree.children[node].length ? node : Math.max(0, tree.parents[node]);
    store.set(`${name}.zoom`, target ? pathOf(tree, target) : null);
    store.set(`${name}.others`, isRest ? "1" : null);
    picture.mark(-1, node);
  };
  const showZoom = () => {
    const target = nodeOf(tree, store.get(`${name}.zoom`));
    picture.zoomTo(target, store.get(`${name}.others`) !== null);
    const isRest = picture.isRest;
    const crumb = (node: number, text: string, isCurrent: boolean) =>
      el("button", { "aria-current": isCurrent ? "true" : null, onclick: () => zoom(node) }, text);
    fill(crumbs, ...[0, ...tree.path(target)].map((one) => crumb(one, tree.names[one], one === target && !isRest)),
      isRest && el("button", { "aria-current": "true" }, `${picture.others().length} below 5%`));
  };
  const order = sortState(store, `${name}.sort`, tree);
  const grid = new Grid(tree, label, `g${viewCount}`, order.get(), { onsort: order.set, onselect: select, onhover: hover, onopen: zoom });
  const { element: tools, clear } = tableTools(store, name, grid, label, (found) => picture.highlight(found));
  const picture = new Picture(tree, label, {
    onhover: hover,
    onclick: async (node) => {
      if (node === OTHERS) return zoom(picture.root, true);
      await grid.settled();
      if (!grid.has(node)) clear();
      grid.select(node, true);
      zoom(node);
    },
  });
  const shape = choice(store, `${name}.shape`, "Picture", SHAPES);
  const view = el("div", { class: "view" },
    ...(hasPicture
      ? [el("div", { class: "tools" }, shape.element, legendList(store, `${name}.colours`, tree, legend)), crumbs,
        el("div", { class: "picture-box" }, picture.element, tip), status]
      : []),
    tools, grid.element);
  const showShape = () => hasPicture && picture.setShape(shape.value);
  store.watch(`${name}.sort`, () => void grid.sort(order.get()));
  store.watch(`${name}.zoom`, showZoom);
  store.watch(`${name}.others`, showZoom);
  store.watch(`${name}.shape`, showShape);
  showShape();
  showZoom();
  fill(status, tree.areas[0] ? `${hint} ${tree.amount(tree.areas[0])} in all: shares are of this.` : hint);
  store.parts[name] = { tree, grid, picture };
  return view;
}

// Show a text beside the pointer, within the picture.
function showTip(tip: HTMLElement, canvas: HTMLElement, text: string, event?: MouseEvent): void {
  tip.hidden = !event || !text;
  if (!event || !text) return;
  fill(tip, text);
  const x = event.offsetX + 14;
  const isRight = x + tip.offsetWidth <= canvas.clientWidth;
  tip.style.left = `${isRight ? x : Math.max(0, event.offsetX - tip.offsetWidth - 8)}px`;
  tip.style.top = `${event.offsetY + 18}px`;
}
