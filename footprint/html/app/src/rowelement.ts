// A row of a tree table as an element.

import { el } from "./dom";
import { isPath } from "./names";
import type { Tree } from "./tree";

export const ROW_PX = 28;

export interface RowElement {
  element: HTMLElement;
  /** Draw a node at a place of the table, where it differs from what was drawn last. */
  draw(place: number, node: number, isActive: boolean, isOpen: boolean): void;
}

export function rowElement(tree: Tree, id: string): RowElement {
  const twist = el("span", { class: "twist", "aria-hidden": "true" });
  const name = el("span", { class: "text", dir: "ltr" });
  const header = el("div", { role: "rowheader", class: "cell c-name" }, twist, el("span", { class: "clip" }, name));
  const cells = tree.columns.map((column) => {
    const bar = column.share ? el("span", { class: "bar", "aria-hidden": "true" }) : null;
    const text = el("span", { class: "text" });
    return { cell: el("div", { role: "gridcell", class: `cell c-${column.key}${bar ? " share" : ""}` }, bar, text), bar, text };
  });
  const element = el("div", { role: "row", class: "row" }, header, ...cells.map(({ cell }) => cell));
  const mark = (attribute: string, value: string | number | boolean) => element.setAttribute(`aria-${attribute}`, String(value));
  let state = "";
  const draw = (place: number, node: number, isActive: boolean, isOpen: boolean) => {
    const now = `${place} ${node} ${isActive} ${isOpen}`;
    if (state === now) return;
    state = now;
    const isGroup = tree.children[node].length > 0;
    const level = tree.level(node);
    element.id = `${id}-${node}`;
    element.dataset.node = String(node);
    element.style.transform = `translateY(${place * ROW_PX}px)`;
    mark("rowindex", place + 2);
    mark("level", level);
    mark("selected", isActive);
    if (isGroup) mark("expanded", isOpen);
    else element.removeAttribute("aria-expanded");
    header.style.paddingInlineStart = `${10 + level * 14}px`;
    twist.textContent = isGroup ? (isOpen ? "▾" : "▸") : "";
    name.textContent = tree.names[node];
    header.classList.toggle("path", isPath(tree.names[node]));
    header.title = (tree.titles[node] ?? tree.names[node]).slice(0, 2000);
    tree.columns.forEach((column, index) => {
      const { bar, text } = cells[index];
      text.textContent = column.text(node);
      if (column.isEvidence) text.className = `text ${text.textContent ? `evidence ${text.textContent}` : ""}`;
      if (bar && column.share) bar.style.width = `${100 * column.share(node)}%`;
    });
  };
  return { element, draw };
}

/** Return the node of the row that an event is in, or -1. */
export function nodeAt({ target }: Event): number {
  const row = target instanceof Element ? target.closest<HTMLElement>("[data-node]") : null;
  return row ? Number(row.dataset.node) : -1;
}
