// The cost of one in its parts, the cost of N, and how many fit.

import { colour } from "./colours";
import { table } from "./data";
import { el, evidenceMark, fill, plainTable } from "./dom";
import type { Page } from "./page";
import type { Store } from "./store";
import { atCount, fitting, paidByEach } from "./terms";
import type { Evidence, ProcessTotals, Projection, Term } from "./types";
import { formatBytes, grouped, parseBytes, percent } from "./units";
import { TITLES } from "./words";

const MEMORY_STEPS = 400; // 1 MiB to 1 PiB
const LEAST_MEMORY_LOG = 20;
const MOST_MEMORY_LOG = 50;

/** The cost of one and of N, from the terms of a projection. */
export class Costs {
  readonly each: bigint;
  readonly once: bigint;

  constructor(private readonly terms: readonly Term[], readonly evidence: Evidence) {
    this.each = atCount(terms.filter((term) => !term.is_once), 1n)!;
    this.once = this.total(1n) - this.each;
  }

  /** Compute the cost of `count` processes. */
  total(count: bigint): bigint {
    return atCount(this.terms, count)!;
  }

  /** Compute the cost of `count` processes if each pays as much at some moment of its life. */
  totalAt(eachBytes: number, count: bigint): bigint {
    return atCount([...this.terms.filter((term) => term.is_once), ...paidByEach(eachBytes)], count)!;
  }

  /** Compute how many fit into a memory; null where one costs nothing, so that any number fits. */
  fitting(memory: bigint): bigint | null {
    return fitting(this.terms, memory);
  }
}

/** Make the table of the cost at moments in the life of a forked worker. */
export function momentsTable(projection: Projection, { count }: Page): HTMLElement | null {
  const points = table(projection.points).rows();
  if (!points.length) return null;
  const costs = new Costs(table(projection.terms).rows(), projection.evidence);
  const view = el("div");
  count.watch((many) => fill(view, plainTable(["at this moment", "each", "all", "known"], points.map((point) => [
    point.name, formatBytes(point.each_bytes), formatBytes(costs.totalAt(point.each_bytes, many)),
    evidenceMark(point.evidence)]), "Moments of its life")));
  return view;
}

/** Make the tiles of the parts of a cost. */
export function tiles(terms: Term[], costs: Costs, noun: string): HTMLElement {
  const known = (evidence: string, more = "") => el("dd", { class: "how" }, evidenceMark(evidence), more && ` ${more}`);
  return el("dl", { class: "tiles" },
    el("div", { class: "tile whole" }, el("dt", {}, `One ${noun}`),
      el("dd", { id: "each", "data-bytes": costs.each.toString() }, formatBytes(costs.each)), known(costs.evidence)),
    ...terms.map((term) => el("div", { class: `tile${term.is_once ? " once" : ""}` },
      el("dt", {}, term.name),
      el("dd", { class: "part", "data-bytes": String(term.size_bytes) }, formatBytes(term.size_bytes)),
      known(term.evidence, term.is_once ? "once" : ""))));
}

/** Make the table of every known figure of one process. */
export function totalsTable(totals: ProcessTotals): HTMLElement {
  const rows = Object.entries(TITLES).flatMap(([name, title]) => {
    const size = name in totals ? totals[name as Exclude<keyof ProcessTotals, "evidence" | "of_which">] : null;
    return size === null ? [] : [[title, formatBytes(size), evidenceMark(totals.evidence[name as keyof ProcessTotals["evidence"]])]];
  });
  const parts = Object.entries(totals.of_which).filter(([, size]) => size)
    .map(([name, size]) => [`of which ${TITLES[name]}`, formatBytes(size), null]);
  return el("details", { class: "totals" }, el("summary", {}, "All totals"),
    plainTable(["one process", "bytes", "known"], [...rows, ...parts], "All totals of one process"));
}

/** Make one bar with the parts of a cost, as wide as their shares. */
export function partsBar(terms: Term[], whole: bigint): HTMLElement | null {
  if (terms.length < 2 || whole <= 0n) return null;
  const parts = terms.map((term, place) => {
    const part = el("span");
    // The first term is memory of the process, the others are of the kernel or shared.
    part.style.background = colour(place ? "kernel" : "private");
    part.style.width = `${(100 * term.size_bytes) / Number(whole)}%`;
    return part;
  });
  const text = terms.map((term) => `${term.name} ${percent(term.size_bytes, Number(whole))}`).join(", ");
  return el("div", {}, el("div", { class: "parts", role: "img", "aria-label": text }, ...parts), el("p", { class: "small" }, text));
}

/** Make the field and the slider of a memory, and show how many fit into it. */
export function fitControl(store: Store, costs: Costs, memoryBytes: number | null, nouns: string): HTMLElement {
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
    const count = costs.fitting(memory);
    if (document.activeElement !== slider) {
      const log = Math.log2(Math.max(1, Number(memory)));
      slider.value = String(Math.round(((log - LEAST_MEMORY_LOG) / (MOST_MEMORY_LOG - LEAST_MEMORY_LOG)) * MEMORY_STEPS));
    }
    slider.setAttribute("aria-valuetext", formatBytes(memory));
    answer.dataset.count = count === null ? "any" : count.toString();
    fill(answer, count === null ? "one more costs nothing by this input: any number fits" : el("strong", {}, grouped(count)),
      count === null ? "" : ` ${nouns} fit`);
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
