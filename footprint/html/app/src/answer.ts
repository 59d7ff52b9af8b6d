// The strip with the answer: what one costs in its parts, what N cost, and how many fit: the sums of
// footprint/attribution/projection.py, in whole numbers of any size.

import { choice, el, evidenceMark, fill, plainTable } from "./dom";
import { table } from "./data";
import { weakest } from "./ledger";
import { printable } from "./names";
import { formatBytes, formatChange, grouped, parseBytes, percent } from "./units";

const NOUNS: Record<string, [string, string]> = {
  exec: ["process", "processes"], fork: ["worker", "workers"], threads: ["thread", "threads"],
};
const BASES: Record<string, string> = {
  "per process": "", "started copy": ", with what it shares now",
  "everything rewritten": " at most, if everything is rewritten",
  private: " of private memory, kernel memory not counted",
  "mapped writable": " of mapped writable memory, an upper bound",
};
const MOST_COUNT = 10n ** 12n;
const MOST_SLIDER = 1200; // a hundredth of a power of ten a step
const MEMORY_STEPS = 400; // 1 MiB to 1 PiB
const LEAST_MEMORY_LOG = 20;
const MOST_MEMORY_LOG = 50;

/** The number that everything on the page is told for. */
export class Count {
  private readonly listeners: ((count: bigint) => void)[] = [];
  constructor(private now: bigint) {}

  get value(): bigint {
    return this.now;
  }

  set(value: bigint): void {
    this.now = value;
    for (const listener of this.listeners) listener(value);
  }

  /** Tell the number now and whenever it is another. */
  watch(listener: (count: bigint) => void): void {
    this.listeners.push(listener);
    listener(this.now);
  }
}

/** What a projection adds up: see `project` of footprint/attribution/projection.py. */
export class Costs {
  readonly each: bigint;
  readonly once: bigint | null;
  readonly evidence: string;

  constructor(terms: { size_bytes: number; is_once: boolean; evidence: string }[]) {
    const sum = (some: { size_bytes: number }[]) => some.reduce((all, term) => all + BigInt(term.size_bytes), 0n);
    this.each = sum(terms.filter((term) => !term.is_once));
    const once = terms.filter((term) => term.is_once);
    this.once = once.length ? sum(once) : null;
    this.evidence = weakest(terms.map((term) => term.evidence));
  }

  /** What so many cost. */
  total(count: bigint, each = this.each): bigint {
    return count ? (this.once ?? 0n) + count * each : 0n;
  }

  /** How many fit; null where one costs nothing, so that any number fits. */
  fitting(memory: bigint): bigint | null {
    if (this.each <= 0n) return null;
    const count = (memory - (this.once ?? 0n)) / this.each;
    return count > 0n ? count : 0n;
  }
}

/** Make the strip of an audit. */
export function answerStrip(audit: any, count: Count): HTMLElement {
  const { projection } = audit;
  const terms = table(projection.terms).rows();
  const points = table(projection.points).rows();
  const costs = new Costs(terms);
  const [noun, nouns] = NOUNS[projection.model] ?? NOUNS.exec;
  const basis = BASES[projection.basis] ?? "";
  const each = terms.filter((term) => !term.is_once);

  const verdict = el("p", { class: "verdict", role: "status", id: "verdict" });
  const sum = el("p", { class: "sum", id: "sum" });
  const life = el("div");
  const tell = (size: bigint) => {
    fill(verdict, `${grouped(size)} ${size === 1n ? noun : nouns} ${size === 1n ? "costs" : "cost"} `,
      el("strong", { id: "total", "data-bytes": costs.total(size).toString() }, formatBytes(costs.total(size))), " ",
      evidenceMark(costs.evidence));
    fill(sum, `${grouped(size)} × ${formatBytes(costs.each)}${basis}`,
      costs.once ? ` + ${formatBytes(costs.once)} that all pay once` : "");
    if (points.length) {
      fill(life, plainTable(["at this moment", "each", "all", "known"], points.map((point) => [
        point.name, formatBytes(point.each_bytes), formatBytes(costs.total(size, BigInt(point.each_bytes))),
        evidenceMark(point.evidence)]), "Moments of its life"));
    }
  };
  const tiles = el("dl", { class: "tiles" },
    el("div", { class: "tile whole" }, el("dt", {}, `One ${noun}`),
      el("dd", { id: "each", "data-bytes": costs.each.toString() }, formatBytes(costs.each)), evidenceDd(costs.evidence)),
    ...terms.map((term) => el("div", { class: `tile${term.is_once ? " once" : ""}` },
      el("dt", {}, term.name),
      el("dd", { class: "part", "data-bytes": String(term.size_bytes) }, formatBytes(term.size_bytes)),
      evidenceDd(term.evidence, term.is_once ? "once" : ""))));
  const strip = el("section", { class: "answer", "aria-labelledby": "answer-title" },
    el("h2", { id: "answer-title" }, "What it costs"), verdict, sum, tiles, partsBar(each, costs.each),
    countControl(count, nouns), fitControl(costs, projection, nouns), life, totalsTable(audit.totals));
  count.watch(tell);
  return strip;
}

// Every figure of the whole process that is known.
function totalsTable(totals: any): HTMLElement {
  const rows = Object.entries(totals.evidence as Record<string, string>).map(([name, evidence]) =>
    [named(name), formatBytes(totals[name]), evidenceMark(evidence)]);
  const special = Object.entries(totals.of_which as Record<string, number>).filter(([, size]) => size)
    .map(([name, size]) => [`of which ${named(name)}`, formatBytes(size), null]);
  return el("details", { class: "totals" }, el("summary", {}, "All totals"),
    plainTable(["one process", "bytes", "known"], [...rows, ...special], "All totals of one process"));
}

function named(figure: string): string {
  return figure.replace(/_bytes$/, "").replaceAll("_", " ");
}

function evidenceDd(evidence: string, more = ""): HTMLElement {
  return el("dd", { class: "how" }, evidenceMark(evidence), more && ` ${more}`);
}

// One bar of the parts of one: which of them weighs.
function partsBar(terms: { name: string; size_bytes: number }[], whole: bigint): HTMLElement | null {
  if (terms.length < 2 || whole <= 0n) return null;
  const parts = terms.map((term, place) => {
    const part = el("span", { class: `part-${place % 6}` });
    part.style.width = `${(100 * term.size_bytes) / Number(whole)}%`;
    return part;
  });
  const text = terms.map((term) => `${term.name} ${percent(term.size_bytes, Number(whole))}`).join(", ");
  return el("div", {}, el("div", { class: "parts", role: "img", "aria-label": text }, ...parts), el("p", { class: "small" }, text));
}

function countControl(count: Count, nouns: string): HTMLElement {
  const number = el("input", { type: "number", id: "count", min: 1, max: String(MOST_COUNT), step: 1 });
  const slider = el("input", {
    type: "range", id: "count-slider", min: 0, max: MOST_SLIDER, step: 1, "aria-label": `Number of ${nouns}`,
  });
  const wrong = el("span", { class: "wrong", role: "alert" });
  number.addEventListener("input", () => {
    const isNumber = /^[0-9]{1,13}$/.test(number.value.trim());
    const value = isNumber ? BigInt(number.value.trim()) : 0n;
    const isGood = value >= 1n && value <= MOST_COUNT;
    fill(wrong, isGood ? "" : "a whole number from 1 to 10^12");
    if (isGood) count.set(value);
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

function fitControl(costs: Costs, projection: any, nouns: string): HTMLElement {
  const given = projection.memory_bytes ?? 32 * 2 ** 30;
  const text = el("input", { type: "text", id: "memory", value: formatBytes(given).replace(" ", ""), size: 10, autocomplete: "off" });
  const slider = el("input", { type: "range", id: "memory-slider", min: 0, max: MEMORY_STEPS, step: 1, "aria-label": "Memory size" });
  const answer = el("output", { id: "fit", for: "memory memory-slider" });
  const tell = () => {
    const memory = parseBytes(text.value);
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
  text.addEventListener("input", tell);
  slider.addEventListener("input", () => {
    const log = LEAST_MEMORY_LOG + (Number(slider.value) / MEMORY_STEPS) * (MOST_MEMORY_LOG - LEAST_MEMORY_LOG);
    text.value = formatBytes(BigInt(Math.round(2 ** log / 2 ** 20)) * (1n << 20n)).replace(" ", "");
    tell();
  });
  tell();
  return el("div", { class: "control" }, el("label", { for: "memory" }, "Memory that they may take"), text, slider, answer);
}

/** Make the budgets of a check: those that fail first, as the command tells them. */
export function budgetsSection(check: any): HTMLElement | null {
  if (!check) return null;
  const rows = table(check.budgets).rows();
  const failed: number = check.checks_failed;
  const amount = (size: number, one: any) => (one.unit === "bytes" ? formatBytes(size) : grouped(size));
  const state = (one: any) => {
    const word = one.fails ? "exceeded" : one.is_exceeded ? "waived" : "holds";
    return el("span", { class: one.fails ? "wrong" : "" }, one.fails ? el("strong", {}, word) : word,
      one.waiver ? ` (${printable(one.waiver.reason)}, ${one.waiver.is_expired ? "expired" : "until"} ${one.waiver.expires})` : "");
  };
  const most = (one: any) => one.contributors.map((part: any) => `${printable(part.name)} ${formatBytes(part.size_bytes)}`).join(", ");
  return el("section", { class: "section", id: "budgets" }, el("h2", {}, "Budgets"),
    el("p", { class: failed ? "wrong" : "" }, rows.length === 0 ? "No budget is set."
      : failed ? `${grouped(failed)} of ${grouped(rows.length)} exceeded.` : rows.length === 1 ? "The budget holds." : `All ${grouped(rows.length)} hold.`),
    el("p", { class: "small" }, `As ${printable(check.budget_file)} has them, at ${grouped(check.count)} ${check.count === 1 ? "process" : "processes"}.`),
    rows.length ? plainTable(["budget", "is", "limit", "room", "state", "most of it"], rows.map((one) => [
      printable(one.key), amount(one.value, one), amount(one.limit, one),
      one.value <= one.limit ? amount(one.limit - one.value, one) : `-${amount(one.value - one.limit, one)}`, state(one), most(one)]), "Budgets") : null);
}

const ORDER = ["per_process_bytes", "private_bytes", "kernel_bytes", "shared_once_bytes"];

/** Make the strip of a comparison. */
export function changeStrip(diff: any, count: Count): HTMLElement {
  const place = (one: any) => (ORDER.includes(one.name) ? ORDER.indexOf(one.name) : ORDER.length);
  const figures = table(diff.figures).rows().sort((one, other) => place(one) - place(other));
  const main = ["per_process_bytes", "private_bytes", "mapped_writable_bytes"]
    .map((name) => figures.find((one) => one.name === name && one.delta_bytes !== null)).find(Boolean);
  const verdict = el("p", { class: "verdict", role: "status", id: "verdict" });
  const rows = el("div");
  count.watch((size) => {
    if (main) {
      const all = BigInt(main.delta_bytes) * size;
      const what = main.delta_bytes > 0 ? "more" : "less";
      fill(verdict, `${grouped(size)} ${size === 1n ? "process costs" : "processes cost"} `,
        main.delta_bytes
          ? el("strong", { id: "total", "data-bytes": all.toString() }, `${formatBytes(all < 0n ? -all : all)} ${what}`)
          : el("strong", { id: "total", "data-bytes": "0" }, "the same"),
        main.is_noise ? " (within the spread of the starts)" : "");
    } else fill(verdict, "No figure is known of both.");
    fill(rows, plainTable(["figure", "before", "after", "change", `at ${grouped(size)}`, "known"], figures.map((one) => [
      named(one.name),
      one.old_bytes === null ? "?" : formatBytes(one.old_bytes), one.new_bytes === null ? "?" : formatBytes(one.new_bytes),
      one.delta_bytes === null ? "?" : formatChange(one.delta_bytes),
      one.delta_bytes === null ? "?" : formatChange(BigInt(one.delta_bytes) * size),
      evidenceMark(weakest([one.old_evidence, one.new_evidence]))]), "Figures before and after"));
  });
  return el("section", { class: "answer", "aria-labelledby": "answer-title" },
    el("h2", { id: "answer-title" }, "What changed"), verdict, rows, countControl(count, "processes"));
}

/** Make the switch of a comparison. */
export function sides(onchoose: (side: "change" | "before" | "after") => void): HTMLElement {
  return choice("Show", [["change", "Change"], ["before", "Before"], ["after", "After"]] as const, "change", onchoose);
}
