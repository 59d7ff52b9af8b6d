// A value of the state that is one of a few.

import { el } from "./dom";
import type { Store } from "./store";

export interface Choice<T extends string> {
  readonly value: T;
  /** The buttons, one of which is pressed. */
  readonly element: HTMLElement;
}

/** Make a group of buttons that choose a value of the state; the first one is the default. */
export function choice<T extends string>(
  store: Store, name: string, label: string, options: readonly (readonly [T, string])[],
): Choice<T> {
  const read = () => options.find(([value]) => value === store.get(name))?.[0] ?? options[0][0];
  const buttons = options.map(([value, text]) => el("button", {
    "data-value": value, onclick: () => store.set(name, value === options[0][0] ? null : value),
  }, text));
  const press = () => buttons.forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.value === read())));
  store.watch(name, press);
  press();
  return { get value() { return read(); }, element: el("div", { role: "group", "aria-label": label, class: "choice" }, ...buttons) };
}
