// One cell for each page of an object, on a canvas: the pointer and the arrow keys choose one.

import { drawCells, drawFrame } from "./celldrawing";
import { type Cell, cellAt, cellBeside, cornerOf, laidOut } from "./celllayout";
import { el } from "./dom";
import { REDRAW } from "./medium";
import type { PageMap, States } from "./pagemap";

const MOST_HEIGHT_PX = 16000;

export interface CellCanvas {
  element: HTMLElement;
  /** Show the pages of another object. */
  show(map: PageMap, label: string): void;
  /** Return the middle of a cell, in pixels of the canvas. For tests. */
  middleOf(cell: Cell): [x: number, y: number];
}

/** Make the canvas with the cells of one object at a time. */
export function cellCanvas(states: States, onchoose: (cell: Cell) => void, map: PageMap): CellCanvas {
  const canvas = el("canvas", { class: "cells", tabindex: 0, role: "application", "aria-roledescription": "page map" });
  /** The cells without the frame of the chosen one. */
  const base = document.createElement("canvas");
  const element = el("div", { class: "cell-box" }, canvas);
  let layout = laidOut(map, 0);
  let ratio = 1;
  let chosen: Cell = [0, 0];
  const frame = () => drawFrame(base, canvas, layout, chosen, ratio);
  const draw = () => {
    drawCells(base, canvas, map, states, layout, ratio);
    frame();
  };
  const lay = () => {
    const width = element.clientWidth - 2;
    if (width < 40) return;
    layout = laidOut(map, width);
    const { height } = layout;
    // Browsers refuse a canvas above some height.
    ratio = height * (devicePixelRatio || 1) > MOST_HEIGHT_PX ? 1 : devicePixelRatio || 1;
    for (const one of [canvas, base]) {
      one.width = Math.round(width * ratio);
      one.height = Math.round(Math.max(height, 1) * ratio);
    }
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    draw();
  };
  const choose = (cell: Cell) => {
    chosen = cell;
    frame();
    if (layout.counts[cell[0]]) onchoose(cell);
  };
  canvas.addEventListener("mousemove", (event) => {
    const found = cellAt(layout, event.offsetX, event.offsetY);
    if (found) choose(found);
  });
  canvas.addEventListener("keydown", (event) => {
    const found = cellBeside(layout, chosen, event.key);
    if (!found) return;
    event.preventDefault();
    choose(found);
    const [, y] = cornerOf(layout, found);
    if (y < element.scrollTop || y > element.scrollTop + element.clientHeight - layout.cellPx) element.scrollTop = y - element.clientHeight / 2;
  });
  new ResizeObserver(lay).observe(element);
  canvas.addEventListener(REDRAW, draw);
  return {
    element,
    show(shown, label) {
      map = shown;
      chosen = [0, 0];
      canvas.setAttribute("aria-label", label);
      layout = laidOut(map, 0);
      lay();
    },
    middleOf: (cell) => cornerOf(layout, cell).map((at) => at + layout.cellPx / 2) as [number, number],
  };
}
