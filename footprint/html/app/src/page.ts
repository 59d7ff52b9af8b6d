// What each section of the report works with, and the table of contents.

import { Count } from "./count";
import { el, fill } from "./dom";
import { Store } from "./store";

/** The state of the report, and the number N in it. */
export interface Page {
  store: Store;
  count: Count;
}

/** Makes a part of the report; null where the answer has no data for it. */
export type Part = () => Node | null;

/** Make the page of an answer that was asked for `count` processes. */
export function makePage(store: Store, count: number): Page {
  return { store, count: new Count(store, BigInt(count || 1)) };
}

/** Scroll to the section in the state. */
export function goTo(store: Store): void {
  const id = store.get("at");
  if (id) document.getElementById(id)?.scrollIntoView();
}

/** Make the table of contents of a report. Returns it, and the function that lists the sections anew. */
export function contents(store: Store, app: HTMLElement): { element: HTMLElement; list: () => void } {
  const element = el("nav", { class: "contents", "aria-label": "Contents" });
  const go = () => goTo(store);
  const list = () => fill(element, ...[...app.querySelectorAll("section[id] > h2")].map((heading) => {
    const { id } = heading.parentElement!;
    return el("a", { href: `#at=${id}`, onclick: (event: MouseEvent) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      store.set("at", id);
      go();
    } }, heading.textContent);
  }));
  store.watch("at", go);
  return { element, list };
}
