// The number of processes N that the report is computed for.

import { el, fill } from "./dom";
import type { Store } from "./store";
import { grouped } from "./units";

const MOST_COUNT = 10n ** 12n;
const MOST_SLIDER = 1200; // one step is a hundredth of a power of ten

/** The number N in the state of the report; at first that of the answer. */
export class Count {
  constructor(private readonly store: Store, private readonly given: bigint) {}

  get value(): bigint {
    return countOf(this.store.get("n") ?? "") ?? this.given;
  }

  set(value: bigint): void {
    this.store.set("n", value === this.given ? null : value.toString());
  }

  /** Call a listener now and after each change. */
  watch(listener: (count: bigint) => void): void {
    this.store.watch("n", () => listener(this.value));
    listener(this.value);
  }
}

// Read a number from 1 to 10^12; null for other texts.
function countOf(text: string): bigint | null {
  const value = /^[0-9]{1,13}$/.test(text.trim()) ? BigInt(text.trim()) : 0n;
  return value >= 1n && value <= MOST_COUNT ? value : null;
}

/** Make the field and the slider that change the number. */
export function countControl(count: Count, nouns: string): HTMLElement {
  const number = el("input", { type: "number", id: "count", min: 1, max: String(MOST_COUNT), step: 1 });
  const slider = el("input", {
    type: "range", id: "count-slider", min: 0, max: MOST_SLIDER, step: 1, "aria-label": `Number of ${nouns}`,
  });
  const wrong = el("span", { class: "wrong", role: "alert" });
  number.addEventListener("input", () => {
    const value = countOf(number.value);
    fill(wrong, value === null ? "a whole number from 1 to 10^12" : "");
    if (value !== null) count.set(value);
  });
  slider.addEventListener("input", () => {
    const exact = 10 ** (Number(slider.value) / 100);
    const step = 10 ** Math.max(0, Math.floor(Math.log10(exact)) - 1);
    count.set(BigInt(Math.round(exact / step)) * BigInt(step));
  });
  count.watch((value) => {
    if (number.value !== value.toString() && document.activeElement !== number) number.value = value.toString();
    if (document.activeElement !== slider) slider.value = String(Math.round(100 * Math.log10(Number(value))));
    slider.setAttribute("aria-valuetext", grouped(value));
  });
  return el("div", { class: "control" }, el("label", { for: "count" }, `How many ${nouns}`), number, slider, wrong);
}
