// Draws one cell for each page of an object.

import { type Cell, type CellLayout, cornerOf } from "./celllayout";
import type { PageMap, States } from "./pagemap";
import { hex } from "./pagetext";
import { grouped } from "./units";

/** Draw all cells on `base`, in the style of the canvas that is shown. */
export function drawCells(base: HTMLCanvasElement, shown: HTMLCanvasElement, { parts }: PageMap, states: States, layout: CellLayout, ratio: number): void {
  const context = base.getContext("2d")!;
  const style = getComputedStyle(shown);
  const { cellPx } = layout;
  const gap = cellPx > 4 ? 1 : 0;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, base.width, base.height);
  context.strokeStyle = style.getPropertyValue("--line").trim();
  context.font = `12px ${style.fontFamily}`;
  parts.forEach((part, place) => {
    context.fillStyle = style.color;
    context.fillText(`${part.kind} ${part.permissions} at ${hex(part.start_addr)}, ${grouped(part.states.length)} ${part.states.length === 1 ? "page" : "pages"}`,
      0, layout.tops[place] - 6);
    part.states.forEach((state, page) => {
      const [x, y] = cornerOf(layout, [place, page]);
      if (state) {
        context.fillStyle = states[state][1];
        context.fillRect(x, y, cellPx - gap, cellPx - gap);
      } else if (gap) {
        context.strokeRect(x + 0.5, y + 0.5, cellPx - 2, cellPx - 2);
      }
    });
  });
}

/** Copy the cells, and draw a frame around the chosen one. */
export function drawFrame(base: HTMLCanvasElement, shown: HTMLCanvasElement, layout: CellLayout, chosen: Cell, ratio: number): void {
  const context = shown.getContext("2d")!;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, shown.width, shown.height);
  if (!base.width) return;
  context.drawImage(base, 0, 0);
  context.scale(ratio, ratio);
  if (chosen[1] >= (layout.counts[chosen[0]] ?? 0)) return;
  const [x, y] = cornerOf(layout, chosen);
  context.strokeStyle = getComputedStyle(shown).color;
  context.lineWidth = 2;
  context.strokeRect(x - 1, y - 1, layout.cellPx + 1, layout.cellPx + 1);
}
