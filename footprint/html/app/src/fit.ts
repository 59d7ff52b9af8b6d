// How many fit into a memory.

import { Costs } from "./cost";
import { el, fill } from "./dom";
import type { Store } from "./store";
import type { FitLimit } from "./types";
import { formatBytes, grouped, parseBytes } from "./units";

/** The limit that the reader changes. */
const MEMORY = "memory";
const MEMORY_STEPS = 400; // 1 MiB to 1 PiB
const LEAST_MEMORY_LOG = 20;
const MOST_MEMORY_LOG = 50;

/** Make the field and the slider of a memory, and show how many fit into it before another limit of the answer is hit. */
export function fitControl(store: Store, costs: Costs, memoryBytes: number | null, limits: FitLimit[], nouns: string): HTMLElement {
  const reserve = BigInt(limits.find(({ name }) => name === MEMORY)?.taken ?? 0);
  const other = limits.find(({ name }) => name !== MEMORY);
  const given = memoryBytes ?? 32 * 2 ** 30;
  const text = el("input", { type: "text", id: "memory", size: 10, autocomplete: "off" });
  const slider = el("input", { type: "range", id: "memory-slider", min: 0, max: MEMORY_STEPS, step: 1, "aria-label": "Memory size" });
  const answer = el("output", { id: "fit", for: "memory memory-slider" });
  const first = formatBytes(given).replace(" ", "");
  // Whatever is typed is kept: what is no size is told to be none.
  const update = () => {
    const told = store.get("memory") ?? first;
    if (text.value !== told) text.value = told;
    const memory = parseBytes(told);
    if (memory === null) {
      fill(answer, "write a size like 32GiB or 500MB");
      answer.removeAttribute("data-count");
      return;
    }
    const inMemory = costs.fitting(memory - reserve);
    const hit = other && (inMemory === null || BigInt(other.count) < inMemory) ? other : null;
    const count = hit ? BigInt(hit.count) : inMemory;
    if (document.activeElement !== slider) {
      const log = Math.log2(Math.max(1, Number(memory)));
      slider.value = String(Math.round(((log - LEAST_MEMORY_LOG) / (MOST_MEMORY_LOG - LEAST_MEMORY_LOG)) * MEMORY_STEPS));
    }
    slider.setAttribute("aria-valuetext", formatBytes(memory));
    answer.dataset.count = count === null ? "any" : count.toString();
    fill(answer, count === null ? "one more costs nothing by this input: any number fits" : el("strong", {}, grouped(count)),
      count === null ? "" : ` ${nouns} fit${hit ? ` before ${hit.name} is hit` : ""}`);
  };
  const choose = (told: string) => store.set("memory", told === first ? null : told);
  text.addEventListener("input", () => choose(text.value));
  slider.addEventListener("input", () => {
    const log = LEAST_MEMORY_LOG + (Number(slider.value) / MEMORY_STEPS) * (MOST_MEMORY_LOG - LEAST_MEMORY_LOG);
    choose(formatBytes(BigInt(Math.round(2 ** log / 2 ** 20)) * (1n << 20n)).replace(" ", ""));
  });
  store.watch("memory", update);
  update();
  return el("div", { class: "control" }, el("label", { for: "memory" }, "Memory that they may take"), text, slider, answer);
}
