// The section on pages: one cell for each page of an object, and a line on the page below the pointer.

import type { PageMapData } from "./data";
import { el, fill, plainTable, section } from "./dom";
import { printable, shortened, shortOwners } from "./names";
import {
  changeCounts, changedMaps, CHANGES, formerPart, placesWithin, privateCount, readMaps, sectionPages, STATES, UNKNOWN,
  type PageMap, type Part, type States,
} from "./pagemap";
import type { Store } from "./store";
import { formatBytes, grouped } from "./units";

const HEAD_PX = 20;
const GAP_PX = 6;
const MOST_HEIGHT_PX = 16000;
const MOST_NAMES = 12;
const MOST_LISTED = 500;

/** A page: the number of its part, and its number within the part. */
type Cell = [part: number, page: number];

/**
 * Make the section on the pages of an audit; null where there are none.
 *
 * @param privateBytes The private bytes of each owner in the ledger.
 */
export function pageMapSection(store: Store, data: PageMapData, pageBytes: number, privateBytes: Map<string, number>): HTMLElement | null {
  const maps = readMaps(data).sort((one, other) => privateCount(other) - privateCount(one));
  const drawnBytes = (map: PageMap) => privateCount(map) * pageBytes;
  if (!maps.length) return null;
  return cellSection(store, maps, STATES, pageBytes, "Page by page", (map) => `${formatBytes(drawnBytes(map))} private`, (map) => {
    const held = privateBytes.get(map.owner) ?? 0;
    if (held <= drawnBytes(map) || map.counts[UNKNOWN] || map.omittedPages) return null;
    return `The table above has ${formatBytes(held)} of it: which of its other pages the process writes is not known one by one.`;
  });
}

/** Make the section on how the pages of objects changed; null where they are not known of both audits. */
export function pageChangeSection(
  store: Store, old: PageMapData, now: PageMapData, pageBytes: number, renamed: Map<string, string>,
): HTMLElement | null {
  const [before, after] = [readMaps(old), readMaps(now)];
  if (!before.length || !after.length) return null;
  const title = "Pages that changed";
  const maps = changedMaps(before, after, renamed);
  if (!maps.length) {
    return section("pages", title,
      el("p", { class: "empty" }, "Every object has the private pages that it had."));
  }
  const figure = (map: PageMap) => {
    const { more, less } = changeCounts(map);
    return `pages +${grouped(more)} -${grouped(less)}`;
  };
  return cellSection(store, maps, CHANGES, pageBytes, title, figure,
    () => "Parts of one kind are compared in their order, and their pages from the first one on.");
}

function cellSection(
  store: Store, maps: PageMap[], states: States, pageBytes: number, title: string,
  figureOf: (map: PageMap) => string, remarkOn: (map: PageMap) => string | null,
): HTMLElement {
  const short = shortOwners(maps.map((one) => one.owner));
  const status = el("p", { class: "status", id: "cell", role: "status" });
  const figures = el("div");
  const canvas = new CellCanvas(states, (cell) => fill(status, ...describedCell(canvas.map, states, cell, pageBytes)), maps[0]);
  const show = (map: PageMap) => {
    canvas.show(map, `Pages of ${printable(short(map.owner))}: the arrow keys move, the line above describes the page`);
    fill(status, "Point at a cell, or move with the arrow keys, to see what lies in that page.");
    const remark = remarkOn(map);
    fill(figures, stateTable(map, states), remark ? el("p", { class: "remark" }, remark) : null,
      map.variables ? null : el("p", { class: "remark" }, "A saved audit keeps the sections of a page, but not its variables: the report of the program itself shows them."),
      map.omittedNames ? el("p", {}, `${grouped(map.omittedNames)} more names are left out.`) : null,
      map.omittedPages ? el("p", {}, `${grouped(map.omittedPages)} more pages are left out.`) : null);
  };
  const select = el("select", { id: "object", onchange: () => show(maps[select.selectedIndex]) }, ...maps.map((one) =>
    el("option", {}, `${printable(shortened(short(one.owner), 120))}: ${figureOf(one)}`)));
  show(maps[0]);
  store.parts.pages = { placeOf: (part: number, page: number) => canvas.middleOf([part, page]) };
  return section("pages", title,
    el("div", { class: "tools" }, el("label", { for: "object" }, "Object"), select, legendList(maps, states)),
    status, canvas.element, figures);
}

function legendList(maps: PageMap[], states: States): HTMLElement {
  const present = states.map((_, state) => state).filter((state) => maps.some((one) => one.counts[state]));
  return el("ul", { class: "legend" }, ...present.map((state) => {
    const [word, colour, meaning] = states[state];
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = colour;
    return el("li", {}, swatch, `${word}: ${meaning}`);
  }));
}

// The number of pages of each part, by state.
function stateTable(map: PageMap, states: States): HTMLElement {
  const shown = states.map((_, state) => state).filter((state) => map.counts[state]);
  return plainTable(["part", "pages", ...shown.map((state) => states[state][0])], map.parts.slice(0, MOST_LISTED).map((part) => {
    const counts = states.map(() => 0);
    part.states.forEach((state) => (counts[state] += 1));
    return [
      `${part.kind} ${part.permissions} ${hex(part.start_addr)}`, grouped(part.states.length),
      ...shown.map((state) => (counts[state] ? grouped(counts[state]) : "-"))];
  }), "Pages by state");
}

// The state of a page, and the sections and variables in it.
function describedCell(map: PageMap, states: States, [place, page]: Cell, pageBytes: number): (string | HTMLElement)[] {
  const part = map.parts[place];
  // A page that is no longer private is described as it was.
  const former = states === CHANGES ? formerPart(part, page) : undefined;
  const start = (former ?? part).start_addr + page * pageBytes;
  const { sections, variables } = former?.map ?? map;
  const names = placesWithin(variables?.() ?? [], start, start + pageBytes);
  const sectionText = placesWithin(sections, start, start + pageBytes).slice(0, MOST_NAMES).map((one) => {
    const { all, own } = sectionPages(map, one, pageBytes);
    const hasShare = states === STATES && !map.counts[UNKNOWN] && all > 1;
    return printable(one.section) + (hasShare ? ` (${grouped(own)} of ${grouped(all)} pages private)` : "");
  }).join(", ");
  const missing = variables || part.kind === "text" ? "" : ": its variables are not saved";
  return [
    el("strong", {}, `${hex(start)} ${states[part.states[page]][0]}`),
    ` ${part.kind} ${part.permissions} ${sectionText}${missing}`,
    names.length ? `: ${names.slice(0, MOST_NAMES).map((one) => `${printable(shortened(one.name ?? "", 200))} (${formatBytes(one.size_bytes)})`).join("; ")}` : "",
    names.length > MOST_NAMES ? `; and ${grouped(names.length - MOST_NAMES)} more` : "",
  ];
}

/** The canvas with the cells of one object. */
class CellCanvas {
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

function hex(addr: number): string {
  return `0x${addr.toString(16)}`;
}
