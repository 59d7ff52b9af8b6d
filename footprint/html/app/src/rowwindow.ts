// The rows of a tree table that are in view: only they are elements.

import { paper, REDRAW } from "./medium";
import { type RowElement, ROW_PX, rowElement } from "./rowelement";
import type { RowList } from "./rowlist";
import type { Tree } from "./tree";

const OVERSCAN = 6;
/** The rows of each table on paper. */
const MOST_PRINTED = 200;

export interface RowWindow {
  /** Draw the rows in view after a change of their state. */
  draw(): void;
  /** Draw them after a change of their number. */
  layOut(): void;
  /** Scroll to the active row. */
  reveal(): void;
  /** Return the number of rows that fit into the view. */
  screenful(): number;
  /** Mark the row of a node. */
  hover(node: number): void;
}

/** Show the rows of a list in `body`, which lies below `head` in `box` and scrolls there. */
export function rowWindow(tree: Tree, id: string, rows: RowList, box: HTMLElement, head: HTMLElement, body: HTMLElement): RowWindow {
  const pool: RowElement[] = [];
  const draw = () => {
    const isPaper = paper.matches;
    const first = isPaper ? 0 : Math.max(0, Math.floor(box.scrollTop / ROW_PX) - OVERSCAN);
    const room = isPaper ? MOST_PRINTED : Math.ceil((box.clientHeight || 400) / ROW_PX) + 2 * OVERSCAN;
    const count = Math.min(rows.shown.length, first + room) - first;
    while (pool.length < count) {
      const row = rowElement(tree, id);
      pool.push(row);
      body.append(row.element);
    }
    while (pool.length > count) pool.pop()!.element.remove();
    // A visible row keeps its element: scrolling draws only the rows that come into view.
    for (let place = first; place < first + count; place += 1) {
      const node = rows.shown[place];
      pool[place % count].draw(place, node, node === rows.active, rows.isOpen(node));
    }
    const active = `${id}-${rows.active}`;
    if (box.getAttribute("aria-activedescendant") !== active) box.setAttribute("aria-activedescendant", active);
  };
  const layOut = () => {
    const count = rows.shown.length;
    box.setAttribute("aria-rowcount", String(count + 1));
    body.style.height = `${(paper.matches ? Math.min(MOST_PRINTED, count) : count) * ROW_PX}px`;
    draw();
  };
  const reveal = () => {
    const top = rows.placeOf(rows.active) * ROW_PX;
    if (top < 0) return;
    const height = box.clientHeight - head.offsetHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW_PX > box.scrollTop + height) box.scrollTop = top + ROW_PX - height;
    draw();
  };
  new ResizeObserver(draw).observe(box);
  box.addEventListener("scroll", draw);
  box.addEventListener(REDRAW, layOut);
  layOut();
  return {
    draw, layOut, reveal, screenful: () => Math.max(1, Math.floor(box.clientHeight / ROW_PX) - 2),
    hover: (node) => pool.forEach(({ element }) => element.classList.toggle("hover", Number(element.dataset.node) === node && node > 0)),
  };
}
