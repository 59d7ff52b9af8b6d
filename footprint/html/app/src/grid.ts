// A tree table: an ARIA treegrid of which only the rows in view are elements.

import { type Found, HOLDS_FOUND, matching, ordered } from "./arrange";
import { el, fill } from "./dom";
import { csv } from "./names";
import type { Column, Tree } from "./tree";
import { atOnce, inTurns, pause } from "./turns";

const ROW_PX = 28;
const OVERSCAN = 6;
// Beyond that height browsers lay nothing out any more.
const MOST_ROWS = 500_000;

interface Events {
  onselect(node: number): void;
  onhover(node: number): void;
  /** Enter or a double click: look closer at it. */
  onopen(node: number): void;
}

export class Grid {
  readonly element: HTMLElement;
  private readonly body: HTMLElement;
  private readonly pool: HTMLElement[] = [];
  private readonly open = new Set<number>([0]);
  private readonly closed = new Set<number>();
  /** What lies in each node, in the order in which it is shown. */
  private children: number[][];
  private found: Found | null = null;
  private shown: number[] = [];
  /** Of each node its place in what is shown, or -1. */
  private readonly places: Int32Array;
  /** What is worked out, in turns; meanwhile the rows stay as they are. */
  private readonly work = new Map<"order" | "filter", Generator>();
  private sortColumn: Column | null | undefined; // undefined: the order in which they were added
  private isDescending = true;
  private active = 0;
  private readonly headings: HTMLElement[];

  constructor(readonly tree: Tree, label: string, private readonly id: string, private readonly events: Events) {
    this.sortColumn = tree.columns[tree.sortedBy];
    this.children = this.sortColumn ? atOnce(ordered(tree, this.sortColumn, true)) : tree.children;
    this.places = new Int32Array(tree.size);
    this.headings = [null, ...tree.columns].map((column) =>
      el("div", { role: "columnheader", class: `cell c-${column?.key ?? "name"}` },
        el("button", { type: "button", onclick: () => this.sort(column) }, column?.label ?? "Name")));
    this.body = el("div", { role: "rowgroup", class: "rows" });
    this.element = el("div", {
      role: "treegrid", class: `grid columns-${tree.columns.length}`, tabindex: 0, "aria-label": label, "aria-readonly": "true",
      "aria-colcount": tree.columns.length + 1,
      onscroll: () => this.draw(), onkeydown: (event: KeyboardEvent) => this.key(event),
      onmouseleave: () => this.events.onhover(-1),
    }, el("div", { role: "rowgroup", class: "head" }, el("div", { role: "row", class: "row" }, ...this.headings)), this.body);
    this.body.addEventListener("mouseover", (event) => this.events.onhover(this.nodeAt(event)));
    this.body.addEventListener("click", (event) => this.click(event));
    this.body.addEventListener("dblclick", (event) => {
      const node = this.nodeAt(event);
      if (node >= 0) this.events.onopen(node);
    });
    new ResizeObserver(() => this.draw()).observe(this.element);
    // One group that holds all says nothing before it is open.
    if (tree.children[0].length <= 3) tree.children[0].forEach((node) => this.open.add(node));
    this.tellOrder();
    this.flatten();
  }

  /** How many rows are shown, opened or found. */
  get rowCount(): number {
    return this.shown.length;
  }

  /** Whether there are more rows than can be shown. */
  get isCut(): boolean {
    return this.shown.length >= MOST_ROWS;
  }

  /** Tell whether the filter lets a node be shown. */
  has(node: number): boolean {
    return this.found === null || this.found.marks[node] !== 0;
  }

  /** Show only what contains a text, with what it lies in and what lies in it. Gives how many rows contain it. */
  async filter(text: string): Promise<number | null> {
    const found = await this.workOut("filter", matching(this.tree, text));
    if (!found) return null;
    this.showFound(found);
    return found.count;
  }

  /** Show what the filter kept out again. */
  unfilter(): void {
    this.giveUp("filter");
    this.showFound(null);
  }

  /** Sort by a column, null for the names; the same again turns the order. */
  async sort(column: Column | null): Promise<void> {
    const isDescending = this.sortColumn === column ? !this.isDescending : column !== null && column.isEvidence !== true;
    this.sortColumn = column;
    this.isDescending = isDescending;
    const children = await this.workOut("order", ordered(this.tree, column, isDescending));
    if (!children) return;
    this.children = children;
    this.tellOrder();
    this.flatten();
  }

  /** Wait until the rows are those that were asked for. */
  async settled(): Promise<void> {
    while (this.work.size) await pause();
  }

  /** Open all, as far as a page can show it; or close all. */
  openAll(isOpen: boolean): void {
    this.closed.clear();
    this.open.clear();
    this.open.add(0);
    if (isOpen) this.tree.children.forEach((children, node) => children.length && this.open.add(node));
    else if (this.found) this.tree.children.forEach((children, node) => node && children.length && this.closed.add(node));
    this.flatten();
  }

  /** Make a node the active row, opening what it lies in. */
  select(node: number, isTold = false): void {
    for (const one of this.tree.path(node).slice(0, -1)) {
      this.open.add(one);
      this.closed.delete(one);
    }
    this.active = node;
    this.flatten();
    this.reveal();
    if (isTold) this.events.onselect(node);
  }

  /** Mark the row of a node that is pointed at elsewhere. */
  hover(node: number): void {
    for (const row of this.pool) row.classList.toggle("hover", Number(row.dataset.node) === node && node > 0);
  }

  /** Give the rows that are shown, opened or found, as CSV: their path, and figures in bytes. */
  csv(): string {
    const { tree } = this;
    const depth = Math.max(1, ...new Set(this.shown.map((node) => tree.level(node) - 1)));
    const levels = Array.from({ length: depth }, (_, place) => `level ${place + 1}`);
    const rows: (string | number | null)[][] = [[...levels, ...tree.columns.map((column) => column.label.toLowerCase())]];
    for (const node of this.shown) {
      const path: (string | null)[] = node ? tree.path(node).map((one) => tree.names[one]) : [tree.names[0]];
      while (path.length < depth) path.push(null);
      rows.push([...path, ...tree.columns.map((column) => column.value(node))]);
    }
    return csv(rows);
  }

  // Newer work of a kind takes the place of what is still worked on; for that there is null.
  private async workOut<T>(what: "order" | "filter", work: Generator<void, T>): Promise<T | null> {
    this.work.set(what, work);
    this.element.setAttribute("aria-busy", "true");
    const isWanted = () => this.work.get(what) === work;
    const found = await inTurns(work, isWanted);
    if (!isWanted()) return null;
    this.giveUp(what);
    return found;
  }

  private giveUp(what: "order" | "filter"): void {
    this.work.delete(what);
    if (!this.work.size) this.element.removeAttribute("aria-busy");
  }

  private showFound(found: Found | null): void {
    this.found = found;
    this.closed.clear();
    this.element.scrollTop = 0;
    this.flatten();
  }

  private isOpen(node: number): boolean {
    if (!this.tree.children[node].length || this.closed.has(node)) return false;
    return this.open.has(node) || (this.found !== null && (this.found.marks[node] & HOLDS_FOUND) !== 0);
  }

  private tellOrder(): void {
    [null, ...this.tree.columns].forEach((column, place) => {
      const order = column === this.sortColumn ? (this.isDescending ? "descending" : "ascending") : "none";
      this.headings[place].setAttribute("aria-sort", order);
    });
  }

  // Put together the rows to show, in their order.
  private flatten(): void {
    const shown: number[] = [];
    const stack = [0];
    while (stack.length && shown.length < MOST_ROWS) {
      const node = stack.pop()!;
      shown.push(node);
      if (!this.isOpen(node)) continue;
      const children = this.children[node];
      for (let place = children.length - 1; place >= 0; place -= 1) if (this.has(children[place])) stack.push(children[place]);
    }
    this.shown = shown;
    this.places.fill(-1);
    shown.forEach((node, place) => (this.places[node] = place));
    if (this.places[this.active] < 0) this.active = 0;
    this.body.style.height = `${shown.length * ROW_PX}px`;
    this.element.setAttribute("aria-rowcount", String(shown.length + 1));
    this.draw();
  }

  private draw(): void {
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW_PX) - OVERSCAN);
    const room = Math.ceil((this.element.clientHeight || 400) / ROW_PX) + 2 * OVERSCAN;
    const past = Math.min(this.shown.length, first + room);
    while (this.pool.length < past - first) {
      const row = this.makeRow();
      this.pool.push(row);
      this.body.append(row);
    }
    while (this.pool.length > past - first) this.pool.pop()!.remove();
    // A row keeps its element while it is in view: what is scrolled past is all that is drawn.
    const count = this.pool.length;
    for (let place = first; place < past; place += 1) {
      const row = this.pool[place % count];
      const state = `${place} ${this.shown[place]} ${this.shown[place] === this.active} ${this.isOpen(this.shown[place])}`;
      if (row.dataset.state === state) continue;
      row.dataset.state = state;
      this.drawRow(row, place);
    }
    const active = `${this.id}-${this.active}`;
    if (this.element.getAttribute("aria-activedescendant") !== active) this.element.setAttribute("aria-activedescendant", active);
  }

  private makeRow(): HTMLElement {
    const name = el("div", { role: "rowheader", class: "cell c-name" },
      el("span", { class: "twist", "aria-hidden": "true" }), el("span", { class: "text", dir: "ltr" }));
    const cells = this.tree.columns.map((column) =>
      el("div", { role: "gridcell", class: `cell c-${column.key}${column.share ? " share" : ""}` },
        column.share && el("span", { class: "bar", "aria-hidden": "true" }), el("span", { class: "text" })));
    return el("div", { role: "row", class: "row" }, name, ...cells);
  }

  private drawRow(row: HTMLElement, place: number): void {
    const { tree } = this;
    const node = this.shown[place];
    const isGroup = tree.children[node].length > 0;
    const level = tree.level(node);
    row.id = `${this.id}-${node}`;
    row.dataset.node = String(node);
    row.style.transform = `translateY(${place * ROW_PX}px)`;
    row.setAttribute("aria-rowindex", String(place + 2));
    row.setAttribute("aria-level", String(level));
    row.setAttribute("aria-selected", String(node === this.active));
    if (isGroup) row.setAttribute("aria-expanded", String(this.isOpen(node)));
    else row.removeAttribute("aria-expanded");
    const [name, ...cells] = row.children as unknown as HTMLElement[];
    (name.firstElementChild as HTMLElement).style.marginInlineStart = `${(level - 1) * 14}px`;
    name.firstElementChild!.textContent = isGroup ? (this.isOpen(node) ? "▾" : "▸") : "";
    name.lastElementChild!.textContent = tree.names[node];
    name.title = (tree.titles[node] ?? tree.names[node]).slice(0, 2000);
    tree.columns.forEach((column, index) => {
      const text = column.text(node);
      const last = cells[index].lastElementChild as HTMLElement;
      last.textContent = text;
      if (column.isEvidence) last.className = `text ${text ? `evidence ${text}` : ""}`;
      if (column.share) (cells[index].firstElementChild as HTMLElement).style.width = `${100 * column.share(node)}%`;
    });
  }

  private nodeAt(event: Event): number {
    const row = (event.target as HTMLElement).closest<HTMLElement>("[data-node]");
    return row ? Number(row.dataset.node) : -1;
  }

  private click(event: MouseEvent): void {
    const node = this.nodeAt(event);
    if (node < 0) return;
    const isTwist = (event.target as HTMLElement).classList.contains("twist");
    this.active = node;
    if (isTwist) this.toggle(node, !this.isOpen(node));
    else this.draw();
    this.events.onselect(node);
  }

  private toggle(node: number, isOpen: boolean): void {
    if (!this.tree.children[node].length) return;
    if (isOpen) {
      this.open.add(node);
      this.closed.delete(node);
    } else {
      this.open.delete(node);
      this.closed.add(node);
    }
    this.flatten();
  }

  private reveal(): void {
    const place = this.places[this.active];
    if (place < 0) return;
    const head = (this.element.firstElementChild as HTMLElement).offsetHeight;
    const top = place * ROW_PX;
    const height = this.element.clientHeight - head;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW_PX > this.element.scrollTop + height) this.element.scrollTop = top + ROW_PX - height;
    this.draw();
  }

  private key(event: KeyboardEvent): void {
    // A heading is a button, which has keys of its own.
    if (event.target !== this.element || event.ctrlKey || event.altKey || event.metaKey) return;
    const place = this.places[this.active];
    const go = (to: number) => {
      this.active = this.shown[Math.min(Math.max(to, 0), this.shown.length - 1)];
      this.reveal();
      this.events.onselect(this.active);
    };
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_PX) - 2);
    switch (event.key) {
      case "ArrowDown": go(place + 1); break;
      case "ArrowUp": go(place - 1); break;
      case "PageDown": go(place + page); break;
      case "PageUp": go(place - page); break;
      case "Home": go(0); break;
      case "End": go(this.shown.length - 1); break;
      case "ArrowRight":
        if (this.tree.children[this.active].length && !this.isOpen(this.active)) this.toggle(this.active, true);
        else if (this.tree.children[this.active].length) go(place + 1);
        break;
      case "ArrowLeft":
        if (this.tree.children[this.active].length && this.isOpen(this.active)) this.toggle(this.active, false);
        else if (this.active) go(this.places[this.tree.parents[this.active]]);
        break;
      case "Enter": this.events.onopen(this.active); break;
      default: return;
    }
    event.preventDefault();
  }
}

/** Write a text to the clipboard; where that is not allowed, show it to be copied. */
export async function copy(text: string, status: HTMLElement, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    fill(status, `${what} copied`);
  } catch {
    const area = el("textarea", { "aria-label": what, readonly: true, rows: 6 });
    area.value = text;
    fill(status, "This browser does not let a page copy; here it is: ", area);
    area.select();
  }
}
