// The number of processes N that the report is computed for.

import { el, fill } from "./dom";
import { grouped } from "./units";

const MOST_COUNT = 10n ** 12n;
const MOST_SLIDER = 1200; // one step is a hundredth of a power of ten

/** The number N, with listeners. */
export class Count {
  private readonly listeners: ((count: bigint) => void)[] = [];
  constructor(private current: bigint) {}

  get value(): bigint {
    return this.current;
  }

  set(value: bigint): void {
    this.current = value;
    for (const listener of this.listeners) listener(value);
  }

  /** Call a listener now and after each change. */
  watch(listener: (count: bigint) => void): void {
    this.listeners.push(listener);
    listener(this.current);
  }
}

/** Make the field and the slider that change the number. */
export function countControl(count: Count, nouns: string): HTMLElement {
  const number = el("input", { type: "number", id: "count", min: 1, max: String(MOST_COUNT), step: 1 });
  const slider = el("input", {
    type: "range", id: "count-slider", min: 0, max: MOST_SLIDER, step: 1, "aria-label": `Number of ${nouns}`,
  });
  const wrong = el("span", { class: "wrong", role: "alert" });
  number.addEventListener("input", () => {
    const isNumber = /^[0-9]{1,13}$/.test(number.value.trim());
    const value = isNumber ? BigInt(number.value.trim()) : 0n;
    const isValid = value >= 1n && value <= MOST_COUNT;
    fill(wrong, isValid ? "" : "a whole number from 1 to 10^12");
    if (isValid) count.set(value);
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
