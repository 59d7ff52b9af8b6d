// The meanings of the colours of a view.

import { COLOURS } from "./colours";
import { el } from "./dom";
import { KIND_NAMES } from "./kinds";
import type { Store } from "./store";
import type { Tree } from "./tree";
import { chosenColours } from "./viewstate";

/** Colours and their meanings. */
export type Legend = (readonly [colour: number, text: string])[];

/** Make the legend of the kinds of memory in a tree. */
export function kindLegend(tree: Tree): Legend {
  return [...new Set(tree.colours.filter((_, node) => tree.areas[node] > 0))].sort((one, other) => one - other).filter((one) => one > 0)
    .map((one) => [one, KIND_NAMES[one]] as const);
}

/** The meanings of the colours: a click shows only what has this colour, or adds it to what is shown. */
export function legendList(store: Store, name: string, tree: Tree, legend: Legend): HTMLElement {
  const buttons = legend.map(([colour, text]) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = COLOURS[colour];
    return el("button", { onclick: () => {
      const chosen = chosenColours(store, name);
      if (!chosen.delete(colour)) chosen.add(colour);
      store.set(name, chosen.size ? [...chosen].sort((one, other) => one - other).join(",") : null);
    } }, swatch, text);
  });
  const press = () => {
    const chosen = chosenColours(store, name);
    legend.forEach(([colour], place) => buttons[place].setAttribute("aria-pressed", String(chosen.has(colour))));
  };
  store.watch(name, press);
  press();
  return el("ul", { class: "legend" }, ...buttons.map((one) => el("li", {}, one)),
    tree.hatched.some(Boolean) && el("li", {}, el("span", { class: "swatch hatched" }), "estimated, or its owner assumed"));
}
