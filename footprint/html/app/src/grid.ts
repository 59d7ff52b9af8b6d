// A tree table: an ARIA treegrid in which only the visible rows are elements.

import { el } from "./dom";
import { type Headings, headings, type Sort } from "./headings";
import { Latest } from "./latest";
import { type Found, matching } from "./rowfilter";
import { followInput, type RowEvents } from "./rowinput";
import { RowList } from "./rowlist";
import { ordered } from "./roworder";
import { type RowWindow, rowWindow } from "./rowwindow";
import { runAtOnce } from "./scheduler";
import { csvLines } from "./shownrows";
import type { Tree } from "./tree";

export class Grid {
  readonly element: HTMLElement;
  readonly rows: RowList;
  readonly work: Latest<"order" | "filter">;
  readonly #head: Headings;
  readonly view: RowWindow;

  /** `onsort` is called with the order that a click on a heading asks for. */
  constructor(readonly tree: Tree, label: string, id: string, order: Sort, onsort: (sort: Sort) => void, readonly events: RowEvents) {
    this.rows = new RowList(tree, order.column !== undefined ? runAtOnce(ordered(tree, order.column, order.isDescending)) : tree.children);
    const head = (this.#head = headings(tree, order, onsort));
    const body = el("div", { role: "rowgroup", class: "rows" });
    const box = (this.element = el("div", {
      role: "treegrid", class: `grid columns-${tree.columns.length}`, tabindex: 0, "aria-label": label, "aria-readonly": "true",
      "aria-colcount": tree.columns.length + 1,
    }, head.element, body));
    this.view = rowWindow(tree, id, this.rows, box, head.element, body);
    this.work = new Latest(box);
    followInput(tree, this.rows, this.view, box, body, events);
  }

  /** Show only the rows that contain a text, with the rows above and below them; with colours only those rows. */
  async filter(text: string, colours: ReadonlySet<number>): Promise<Found | null> {
    const found = await this.work.run("filter", matching(this.tree, text, colours));
    if (found) this.show(found);
    return found;
  }

  /** Show what a filter has found, null for all rows; a filter that is running ends. */
  show(found: Found | null): void {
    this.work.cancel("filter");
    this.rows.show(found);
    this.element.scrollTop = 0;
    this.view.layOut();
  }

  /** Sort by a column. */
  async sort(order: Sort): Promise<void> {
    const { column, isDescending } = order;
    this.#head.ask(order);
    const children = column === undefined ? this.tree.children : await this.work.run("order", ordered(this.tree, column, isDescending));
    if (!children) return;
    this.rows.order(children);
    this.#head.mark(order);
    this.view.layOut();
  }

  /** Open or close all groups. */
  openAll(isOpen: boolean): void {
    this.rows.openAll(isOpen);
    this.view.layOut();
  }

  /** Make a node the active row, and open the groups above it. */
  select(node: number): void {
    this.rows.select(node);
    this.view.layOut();
    this.view.reveal();
    this.events.onselect(node);
  }

  /** Write the shown rows as CSV at once. For tests. */
  csv(): string {
    return runAtOnce(csvLines(this.tree, this.rows.shown)).join("");
  }
}
