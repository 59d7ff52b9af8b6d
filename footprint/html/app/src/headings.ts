// The headings of a tree table: a click on one sorts by its column.

import { el } from "./dom";
import type { Column, Tree } from "./tree";

/** A column, null for the names, undefined for the order of the tree; and its direction. */
export interface Sort {
  column: Column | null | undefined;
  isDescending: boolean;
}

export interface Headings {
  element: HTMLElement;
  /** Tell which order the table is to have: the next click on a heading follows from it. */
  ask(order: Sort): void;
  /** Show the order that the table has. */
  mark(order: Sort): void;
}

/** Make the headings; `onsort` is called with the order that a click asks for. */
export function headings(tree: Tree, order: Sort, onsort: (sort: Sort) => void): Headings {
  let asked = order;
  const columns = [null, ...tree.columns];
  // The same column again reverses the order.
  const next = (column: Column | null): Sort =>
    ({ column, isDescending: asked.column === column ? !asked.isDescending : column !== null && column.isEvidence !== true });
  const cells = columns.map((column) =>
    el("div", { role: "columnheader", class: `cell c-${column?.key ?? "name"}` },
      el("button", { onclick: () => onsort(next(column)) }, column?.label ?? "Name")));
  const mark = ({ column, isDescending }: Sort) => columns.forEach((one, place) =>
    cells[place].setAttribute("aria-sort", one !== column ? "none" : isDescending ? "descending" : "ascending"));
  mark(order);
  return {
    element: el("div", { role: "rowgroup", class: "head" }, el("div", { role: "row", class: "row" }, ...cells)),
    ask: (order) => (asked = order), mark,
  };
}
