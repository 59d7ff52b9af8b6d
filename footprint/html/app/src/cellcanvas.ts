// One cell for each page of an object, drawn on a canvas.

import { el } from "./dom";
import type { PageMap, Part, States } from "./pagemap";
import { grouped } from "./units";

const HEAD_PX = 20;
const GAP_PX = 6;
const MOST_HEIGHT_PX = 16000;

/** A page: the number of its part, and its number within the part. */
export type Cell = [part: number, page: number];

/** The canvas with the cells of one object. */
export class CellCanvas {
  readonly element: HTMLElement;
  readonly #canvas = el("canvas", { class: "cells", tabindex: 0, role: "application", "aria-roledescription": "page map" });
  /** The cells without the frame of the chosen one. */
  readonly #base = document.createElement("canvas");
  /** Where the cells of each part begin, in pixels from the top. */
  #tops: number[] = [];
  #ratio = 1;
  #cellPx = 10;
  #columns = 1;
  #width = 0;
  #chosen: Cell = [0, 0];

  constructor(private readonly states: States, private readonly onchoose: (cell: Cell) => void, public map: PageMap) {
    this.element = el("div", { class: "cell-box" }, this.#canvas);
    this.#canvas.addEventListener("mousemove", (event) => {
      const found = this.#cellAt(event);
      if (found) this.#choose(found);
    });
    this.#canvas.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#lay()).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
  }

  /** Show the pages of another object. */
  show(map: PageMap, label: string): void {
    this.map = map;
    this.#chosen = [0, 0];
    this.#canvas.setAttribute("aria-label", label);
    this.#lay();
  }

  /** Return the middle of a cell, in pixels of the canvas. */
  middleOf([part, page]: Cell): [x: number, y: number] {
    const [x, y] = this.#corner(part, page);
    return [x + this.#cellPx / 2, y + this.#cellPx / 2];
  }

  #corner(part: number, page: number): [x: number, y: number] {
    return [(page % this.#columns) * this.#cellPx, this.#tops[part] + Math.floor(page / this.#columns) * this.#cellPx];
  }

  #lay(): void {
    this.#width = this.element.clientWidth - 2;
    if (this.#width < 40) return;
    const count = this.map.parts.reduce((all, part) => all + part.states.length, 0);
    this.#cellPx = count <= 4000 ? 12 : count <= 20000 ? 8 : count <= 100000 ? 5 : 3;
    this.#columns = Math.max(1, Math.floor(this.#width / this.#cellPx));
    let height = 0;
    this.#tops = this.map.parts.map((part) => {
      const top = height + HEAD_PX;
      height = top + Math.ceil(part.states.length / this.#columns) * this.#cellPx + GAP_PX;
      return top;
    });
    // Browsers refuse a canvas above some height.
    this.#ratio = height * (devicePixelRatio || 1) > MOST_HEIGHT_PX ? 1 : devicePixelRatio || 1;
    for (const one of [this.#canvas, this.#base]) {
      one.width = Math.round(this.#width * this.#ratio);
      one.height = Math.round(Math.max(height, 1) * this.#ratio);
    }
    this.#canvas.style.width = `${this.#width}px`;
    this.#canvas.style.height = `${height}px`;
    this.#draw();
  }

  #draw(): void {
    const context = this.#base.getContext("2d")!;
    context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    context.clearRect(0, 0, this.#width, this.#canvas.height);
    const style = getComputedStyle(this.#canvas);
    context.strokeStyle = style.getPropertyValue("--line").trim();
    context.font = `12px ${style.fontFamily}`;
    this.map.parts.forEach((part, place) => this.#drawPart(context, part, place, style.color));
    this.#drawFrame();
  }

  #drawPart(context: CanvasRenderingContext2D, part: Part, place: number, textColour: string): void {
    const gap = this.#cellPx > 4 ? 1 : 0;
    context.fillStyle = textColour;
    context.fillText(`${part.kind} ${part.permissions} at ${hex(part.start_addr)}, ${grouped(part.states.length)} ${part.states.length === 1 ? "page" : "pages"}`,
      0, this.#tops[place] - 6);
    part.states.forEach((state, page) => {
      const [x, y] = this.#corner(place, page);
      if (state) {
        context.fillStyle = this.states[state][1];
        context.fillRect(x, y, this.#cellPx - gap, this.#cellPx - gap);
      } else if (gap) {
        context.strokeRect(x + 0.5, y + 0.5, this.#cellPx - 2, this.#cellPx - 2);
      }
    });
  }

  // Copy the cells and draw a frame around the chosen one.
  #drawFrame(): void {
    const context = this.#canvas.getContext("2d")!;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    if (!this.#base.width) return;
    context.drawImage(this.#base, 0, 0);
    context.scale(this.#ratio, this.#ratio);
    const [place, page] = this.#chosen;
    if (page >= (this.map.parts[place]?.states.length ?? 0)) return;
    const [x, y] = this.#corner(place, page);
    context.strokeStyle = getComputedStyle(this.#canvas).color;
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, this.#cellPx + 1, this.#cellPx + 1);
  }

  #choose(cell: Cell): void {
    this.#chosen = cell;
    this.#drawFrame();
    if (this.map.parts[cell[0]]?.states.length) this.onchoose(cell);
  }

  #cellAt(event: MouseEvent): Cell | null {
    for (const [place, part] of this.map.parts.entries()) {
      const row = Math.floor((event.offsetY - this.#tops[place]) / this.#cellPx);
      const column = Math.floor(event.offsetX / this.#cellPx);
      const page = row * this.#columns + column;
      if (row >= 0 && column < this.#columns && page < part.states.length) return [place, page];
    }
    return null;
  }

  #key(event: KeyboardEvent): void {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.#columns, ArrowDown: this.#columns };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const { parts } = this.map;
    let [place, page] = this.#chosen;
    page += step;
    while (page < 0 && place > 0) page += parts[(place -= 1)].states.length;
    while (page >= parts[place].states.length && place + 1 < parts.length) page -= parts[place++].states.length;
    this.#choose([place, Math.min(Math.max(page, 0), Math.max(0, parts[place].states.length - 1))]);
    const [, y] = this.#corner(...this.#chosen);
    const box = this.element;
    if (y < box.scrollTop || y > box.scrollTop + box.clientHeight - this.#cellPx) box.scrollTop = y - box.clientHeight / 2;
  }
}

export function hex(addr: number): string {
  return `0x${addr.toString(16)}`;
}
