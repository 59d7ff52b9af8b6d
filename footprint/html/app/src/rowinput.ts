// The mouse and the keys of a tree table.

import { nodeAt } from "./rowelement";
import type { RowList } from "./rowlist";
import type { RowWindow } from "./rowwindow";
import type { Tree } from "./tree";

export interface RowEvents {
  onselect(node: number): void;
  onhover(node: number): void;
  /** Called for Enter or a double click. */
  onopen(node: number): void;
}

/** Move the active row of a list, and open and close its groups, by the events of `box` and of the rows in `body`. */
export function followInput(tree: Tree, rows: RowList, view: RowWindow, box: HTMLElement, body: HTMLElement, events: RowEvents): void {
  const toggle = (node: number, isOpen: boolean) => {
    rows.toggle(node, isOpen);
    view.layOut();
  };
  const go = (place: number) => {
    rows.active = rows.shown[Math.min(Math.max(place, 0), rows.shown.length - 1)];
    view.reveal();
    events.onselect(rows.active);
  };
  body.addEventListener("mouseover", (event) => events.onhover(nodeAt(event)));
  box.addEventListener("mouseleave", () => events.onhover(-1));
  body.addEventListener("dblclick", (event) => {
    if (nodeAt(event) >= 0) events.onopen(nodeAt(event));
  });
  body.addEventListener("click", (event) => {
    const node = nodeAt(event);
    if (node < 0) return;
    rows.active = node;
    if (event.target instanceof Element && event.target.classList.contains("twist")) toggle(node, !rows.isOpen(node));
    else view.draw();
    events.onselect(node);
  });
  box.addEventListener("keydown", (event) => {
    // A heading is a button and handles its own keys.
    if (event.target !== box || event.ctrlKey || event.altKey || event.metaKey) return;
    const { active } = rows;
    const place = rows.placeOf(active);
    const isOpen = rows.isOpen(active);
    switch (event.key) {
      case "ArrowDown": go(place + 1); break;
      case "ArrowUp": go(place - 1); break;
      case "PageDown": go(place + view.screenful()); break;
      case "PageUp": go(place - view.screenful()); break;
      case "Home": go(0); break;
      case "End": go(rows.shown.length - 1); break;
      case "ArrowRight":
        if (isOpen) go(place + 1);
        else if (tree.children[active].length) toggle(active, true);
        break;
      case "ArrowLeft":
        if (isOpen) toggle(active, false);
        else if (active) go(rows.placeOf(tree.parents[active]));
        break;
      case "Enter": events.onopen(active); break;
      default: return;
    }
    event.preventDefault();
  });
}
