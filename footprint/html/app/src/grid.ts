// A tree table: an ARIA treegrid in which only the visible rows are elements.

import { el, fill } from "./dom";
import { MOST_ROWS, RowList, csvLines } from "./rowlist";
import { type Found, matching, ordered } from "./rows";
import { nextTask, runAtOnce, runInSlices } from "./scheduler";
import type { Column, Tree } from "./tree";

const ROW_PX = 28;
const OVERSCAN = 6;
/** The rows of each table on paper. */
const MOST_PRINTED = 200;

/** A column, null for the names, undefined for the order of the tree; and its direction. */
export interface Sort {
  column: Column | null | undefined;
  isDescending: boolean;
}

interface Events {
  /** Called with the order that a click on a heading asks for. */
  onsort(sort: Sort): void;
  onselect(node: number): void;
  onhover(node: number): void;
  /** Called for Enter or a double click. */
  onopen(node: number): void;
}

/** The elements of a visible row. */
interface RowElements {
  element: HTMLElement;
  header: HTMLElement;
  twist: HTMLElement;
  name: HTMLElement;
  cells: { element: HTMLElement; bar: HTMLElement | null; text: HTMLElement }[];
  /** What was drawn last. */
  state: string;
}

const paper = matchMedia("print");

export class Grid {
  readonly element: HTMLElement;
  readonly #head: HTMLElement;
  readonly #body: HTMLElement;
  readonly #pool: RowElements[] = [];
  readonly #rows: RowList;
  /** The filter and the sort that are running; the rows change when they have ended. */
  readonly #work = new Map<"order" | "filter", Generator>();
  readonly #headings: HTMLElement[];

  constructor(readonly tree: Tree, label: string, private readonly id: string, private order: Sort, private readonly events: Events) {
    const { column, isDescending } = order;
    this.#rows = new RowList(tree, column !== undefined ? runAtOnce(ordered(tree, column, isDescending)) : tree.children);
    this.#headings = [null, ...tree.columns].map((column) =>
      el("div", { role: "columnheader", class: `cell c-${column?.key ?? "name"}` },
        el("button", { onclick: () => this.events.onsort(this.#next(column)) }, column?.label ?? "Name")));
    this.#head = el("div", { role: "rowgroup", class: "head" }, el("div", { role: "row", class: "row" }, ...this.#headings));
    this.#body = el("div", { role: "rowgroup", class: "rows" });
    this.element = el("div", {
      role: "treegrid", class: `grid columns-${tree.columns.length}`, tabindex: 0, "aria-label": label, "aria-readonly": "true",
      "aria-colcount": tree.columns.length + 1,
      onscroll: () => this.#draw(), onkeydown: (event: KeyboardEvent) => this.#key(event),
      onmouseleave: () => this.events.onhover(-1),
    }, this.#head, this.#body);
    this.#body.addEventListener("mouseover", (event) => this.events.onhover(this.#nodeAt(event)));
    this.#body.addEventListener("click", (event) => this.#click(event));
    this.#body.addEventListener("dblclick", (event) => {
      const node = this.#nodeAt(event);
      if (node >= 0) this.events.onopen(node);
    });
    new ResizeObserver(() => this.#draw()).observe(this.element);
    paper.addEventListener("change", () => this.#layOut());
    this.#markOrder();
    this.#changed();
  }

  /** The number of rows that are shown. */
  get rowCount(): number {
    return this.#rows.shown.length;
  }

  /** Whether there are more rows than a browser can show. */
  get isCut(): boolean {
    return this.rowCount >= MOST_ROWS;
  }

  /** Return whether the filter shows a node. */
  has(node: number): boolean {
    return this.#rows.has(node);
  }

  /** Show only the rows that contain a text, with the rows above and below them; with colours only those rows. */
  async filter(text: string, colours: ReadonlySet<number>): Promise<Found | null> {
    const found = await this.#run("filter", matching(this.tree, text, colours));
    if (found) this.#showFound(found);
    return found;
  }

  /** Show all rows again. */
  unfilter(): void {
    this.#cancel("filter");
    this.#showFound(null);
  }

  // The same column again reverses the order.
  #next(column: Column | null): Sort {
    const isDescending = this.order.column === column ? !this.order.isDescending : column !== null && column.isEvidence !== true;
    return { column, isDescending };
  }

  /** Sort by a column. */
  async sort(order: Sort): Promise<void> {
    this.order = order;
    const { column, isDescending } = order;
    const children = column === undefined ? this.tree.children : await this.#run("order", ordered(this.tree, column, isDescending));
    if (!children) return;
    this.#rows.order(children);
    this.#markOrder();
    this.#changed();
  }

  /** Wait until no filter and no sort is running. */
  async settled(): Promise<void> {
    while (this.#work.size) await nextTask();
  }

  /** Open or close all groups. */
  openAll(isOpen: boolean): void {
    this.#rows.openAll(isOpen);
    this.#changed();
  }

  /** Make a node the active row, and open the groups above it. */
  select(node: number, isAnnounced = false): void {
    this.#rows.select(node);
    this.#changed();
    this.#reveal();
    if (isAnnounced) this.events.onselect(node);
  }

  /** Mark the row of a node that the pointer is on in the picture. */
  hover(node: number): void {
    for (const { element } of this.#pool) element.classList.toggle("hover", Number(element.dataset.node) === node && node > 0);
  }

  /** Write the shown rows as CSV at once. */
  csv(): string {
    return runAtOnce(this.csvLines()).join("");
  }

  /** Write the shown rows as lines of CSV: their paths, and figures in bytes. */
  csvLines(): Generator<void, string[]> {
    return csvLines(this.tree, this.#rows.shown);
  }

  // Run a filter or a sort; a newer one of the same kind cancels it, and then the result is null.
  async #run<T>(what: "order" | "filter", work: Generator<void, T>): Promise<T | null> {
    this.#work.set(what, work);
    this.element.setAttribute("aria-busy", "true");
    const isWanted = () => this.#work.get(what) === work;
    const found = await runInSlices(work, isWanted);
    if (!isWanted()) return null;
    this.#cancel(what);
    return found;
  }

  #cancel(what: "order" | "filter"): void {
    this.#work.delete(what);
    if (!this.#work.size) this.element.removeAttribute("aria-busy");
  }

  #showFound(found: Found | null): void {
    this.#rows.show(found);
    this.element.scrollTop = 0;
    this.#changed();
  }

  #markOrder(): void {
    [null, ...this.tree.columns].forEach((column, place) => {
      const order = column === this.order.column ? (this.order.isDescending ? "descending" : "ascending") : "none";
      this.#headings[place].setAttribute("aria-sort", order);
    });
  }

  #changed(): void {
    this.element.setAttribute("aria-rowcount", String(this.rowCount + 1));
    this.#layOut();
  }

  #layOut(): void {
    const count = paper.matches ? Math.min(MOST_PRINTED, this.rowCount) : this.rowCount;
    this.#body.style.height = `${count * ROW_PX}px`;
    this.#draw();
  }

  #draw(): void {
    const first = paper.matches ? 0 : Math.max(0, Math.floor(this.element.scrollTop / ROW_PX) - OVERSCAN);
    const room = paper.matches ? MOST_PRINTED : Math.ceil((this.element.clientHeight || 400) / ROW_PX) + 2 * OVERSCAN;
    const past = Math.min(this.rowCount, first + room);
    while (this.#pool.length < past - first) {
      const row = this.#makeRow();
      this.#pool.push(row);
      this.#body.append(row.element);
    }
    while (this.#pool.length > past - first) this.#pool.pop()!.element.remove();
    // A visible row keeps its element: scrolling draws only the rows that come into view.
    const count = this.#pool.length;
    for (let place = first; place < past; place += 1) {
      const row = this.#pool[place % count];
      const node = this.#rows.shown[place];
      const state = `${place} ${node} ${node === this.#rows.active} ${this.#rows.isOpen(node)}`;
      if (row.state === state) continue;
      row.state = state;
      this.#drawRow(row, place);
    }
    const active = `${this.id}-${this.#rows.active}`;
    if (this.element.getAttribute("aria-activedescendant") !== active) this.element.setAttribute("aria-activedescendant", active);
  }

  #makeRow(): RowElements {
    const twist = el("span", { class: "twist", "aria-hidden": "true" });
    const name = el("span", { class: "text", dir: "ltr" });
    const header = el("div", { role: "rowheader", class: "cell c-name" }, twist, name);
    const cells = this.tree.columns.map((column) => {
      const bar = column.share ? el("span", { class: "bar", "aria-hidden": "true" }) : null;
      const text = el("span", { class: "text" });
      return { element: el("div", { role: "gridcell", class: `cell c-${column.key}${bar ? " share" : ""}` }, bar, text), bar, text };
    });
    const element = el("div", { role: "row", class: "row" }, header, ...cells.map((cell) => cell.element));
    return { element, header, twist, name, cells, state: "" };
  }

  #drawRow({ element, header, twist, name, cells }: RowElements, place: number): void {
    const { tree } = this;
    const node = this.#rows.shown[place];
    const isGroup = tree.children[node].length > 0;
    const level = tree.level(node);
    element.id = `${this.id}-${node}`;
    element.dataset.node = String(node);
    element.style.transform = `translateY(${place * ROW_PX}px)`;
    element.setAttribute("aria-rowindex", String(place + 2));
    element.setAttribute("aria-level", String(level));
    element.setAttribute("aria-selected", String(node === this.#rows.active));
    if (isGroup) element.setAttribute("aria-expanded", String(this.#rows.isOpen(node)));
    else element.removeAttribute("aria-expanded");
    header.style.paddingInlineStart = `${10 + level * 14}px`;
    twist.textContent = isGroup ? (this.#rows.isOpen(node) ? "▾" : "▸") : "";
    name.textContent = tree.names[node];
    header.title = (tree.titles[node] ?? tree.names[node]).slice(0, 2000);
    tree.columns.forEach((column, index) => {
      const { bar, text } = cells[index];
      text.textContent = column.text(node);
      if (column.isEvidence) text.className = `text ${text.textContent ? `evidence ${text.textContent}` : ""}`;
      if (bar && column.share) bar.style.width = `${100 * column.share(node)}%`;
    });
  }

  #nodeAt(event: Event): number {
    const row = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-node]") : null;
    return row ? Number(row.dataset.node) : -1;
  }

  #click(event: MouseEvent): void {
    const node = this.#nodeAt(event);
    if (node < 0) return;
    const isTwist = event.target instanceof Element && event.target.classList.contains("twist");
    this.#rows.active = node;
    if (isTwist) this.#toggle(node, !this.#rows.isOpen(node));
    else this.#draw();
    this.events.onselect(node);
  }

  #toggle(node: number, isOpen: boolean): void {
    this.#rows.toggle(node, isOpen);
    this.#changed();
  }

  #reveal(): void {
    const place = this.#rows.placeOf(this.#rows.active);
    if (place < 0) return;
    const head = this.#head.offsetHeight;
    const top = place * ROW_PX;
    const height = this.element.clientHeight - head;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW_PX > this.element.scrollTop + height) this.element.scrollTop = top + ROW_PX - height;
    this.#draw();
  }

  #key(event: KeyboardEvent): void {
    // A heading is a button and handles its own keys.
    if (event.target !== this.element || event.ctrlKey || event.altKey || event.metaKey) return;
    const { active } = this.#rows;
    const children = this.tree.children[active];
    const place = this.#rows.placeOf(active);
    const go = (to: number) => {
      this.#rows.active = this.#rows.shown[Math.min(Math.max(to, 0), this.rowCount - 1)];
      this.#reveal();
      this.events.onselect(this.#rows.active);
    };
    const screenful = Math.max(1, Math.floor(this.element.clientHeight / ROW_PX) - 2);
    switch (event.key) {
      case "ArrowDown": go(place + 1); break;
      case "ArrowUp": go(place - 1); break;
      case "PageDown": go(place + screenful); break;
      case "PageUp": go(place - screenful); break;
      case "Home": go(0); break;
      case "End": go(this.rowCount - 1); break;
      case "ArrowRight":
        if (children.length && !this.#rows.isOpen(active)) this.#toggle(active, true);
        else if (children.length) go(place + 1);
        break;
      case "ArrowLeft":
        if (this.#rows.isOpen(active)) this.#toggle(active, false);
        else if (active) go(this.#rows.placeOf(this.tree.parents[active]));
        break;
      case "Enter": this.events.onopen(active); break;
      default: return;
    }
    event.preventDefault();
  }
}

/** Copy a text to the clipboard; where the browser refuses, show the text so that the reader can copy it. */
export async function copy(text: string, status: HTMLElement, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    fill(status, `${what} copied`);
  } catch {
    const area = el("textarea", { "aria-label": what, readonly: true, rows: 6 });
    area.value = text;
    fill(status, "This browser refuses to copy. Copy the text here: ", area);
    area.select();
  }
}
