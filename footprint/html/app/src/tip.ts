// Where the reader is in a picture: what lies at the pointer, and the way to what is shown.

import { el, fill } from "./dom";
import type { Tree } from "./tree";

/** Show a text beside the pointer, within the picture. */
export function showTip(tip: HTMLElement, canvas: HTMLElement, text: string, event?: MouseEvent): void {
  tip.hidden = !event || !text;
  if (!event || !text) return;
  fill(tip, text);
  const x = event.offsetX + 14;
  const isRight = x + tip.offsetWidth <= canvas.clientWidth;
  tip.style.left = `${isRight ? x : Math.max(0, event.offsetX - tip.offsetWidth - 8)}px`;
  tip.style.top = `${event.offsetY + 18}px`;
}

/** Make a button for each node from the whole to the one that is shown, and the name of its parts if only the small ones are. */
export function crumbsOf(tree: Tree, shown: number, rest: string | null, zoom: (node: number) => void): HTMLElement[] {
  const found = [0, ...tree.path(shown)].map((one) =>
    el("button", { "aria-current": one === shown && rest === null ? "true" : null, onclick: () => zoom(one) }, tree.names[one]));
  return rest === null ? found : [...found, el("button", { "aria-current": "true" }, rest)];
}
