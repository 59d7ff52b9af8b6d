// Draws the boxes of a picture on a canvas.

import { COLOURS } from "./colours";
import { label } from "./boxlabel";
import { boxFigure, boxName } from "./boxtext";
import type { Placed } from "./layout";
import { type Frame, thickness, trace } from "./shapes";
import type { Tree } from "./tree";

/** Draw all boxes on `base`, in the style of the canvas that is shown. */
export function drawBoxes(base: HTMLCanvasElement, shown: HTMLCanvasElement, tree: Tree, frame: Frame, isPale: (node: number) => boolean): void {
  const ratio = devicePixelRatio || 1;
  for (const canvas of [base, shown]) {
    canvas.width = Math.round(frame.width * ratio);
    canvas.height = Math.round(frame.height * ratio);
  }
  const context = base.getContext("2d")!;
  context.scale(ratio, ratio);
  const style = getComputedStyle(shown);
  context.strokeStyle = style.getPropertyValue("--ground").trim() || "#fff";
  context.font = `12px ${style.fontFamily}`;
  context.textBaseline = "middle";
  const hatch = hatching(context);
  if (!frame.boxes.length) {
    context.fillStyle = style.color;
    context.fillText("Nothing here takes memory.", 12, 24);
  }
  for (const box of frame.boxes) {
    const { node } = box;
    if (!trace(context, frame, box)) continue;
    context.globalAlpha = isPale(node) ? 0.25 : 1;
    context.fillStyle = COLOURS[node < 0 || box.depth === 0 ? 0 : tree.colours[node]];
    context.fill();
    if (node >= 0 && tree.hatched[node] && !(frame.shape === "treemap" && box.children)) {
      context.fillStyle = hatch;
      context.fill();
    }
    // A part that is hardly wider than a line would vanish behind its border.
    if (thickness(frame, box) >= 3) context.stroke();
    label(context, frame, box, boxName(tree, box), boxFigure(tree, box));
    context.globalAlpha = 1;
  }
}

/** Copy a drawing, and outline boxes in it. */
export function drawMarks(base: HTMLCanvasElement, shown: HTMLCanvasElement, frame: Frame, marked: [box: Placed | undefined, width: number][]): void {
  if (!frame.width) return;
  const context = shown.getContext("2d")!;
  const ratio = devicePixelRatio || 1;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, shown.width, shown.height);
  context.drawImage(base, 0, 0);
  context.scale(ratio, ratio);
  context.strokeStyle = getComputedStyle(shown).color;
  for (const [box, width] of marked) {
    if (!box || !trace(context, frame, box)) continue;
    context.lineWidth = width;
    context.stroke();
  }
}

function hatching(context: CanvasRenderingContext2D): CanvasPattern {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const lines = tile.getContext("2d")!;
  lines.strokeStyle = "rgba(0,0,0,0.38)";
  lines.lineWidth = 1.2;
  for (const from of [-8, 0, 8]) {
    lines.moveTo(from, 8);
    lines.lineTo(from + 8, 0);
  }
  lines.stroke();
  return context.createPattern(tile, "repeat")!;
}
