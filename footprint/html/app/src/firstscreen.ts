// The first section of an audit: what one more costs and what N cost, who costs most, and what to do about it.

import { Costs, momentsTable, partsBar, tiles, totalsTable } from "./cost";
import { fitControl } from "./fit";
import { countControl } from "./count";
import { table, type LedgerAnswer } from "./data";
import { answerSection, el, evidenceMark, fill, plainTable, type Child } from "./dom";
import { printable, shortOwners } from "./names";
import type { Page } from "./page";
import { type Payer, payersOf } from "./payers";
import { savings } from "./savings";
import { atCount } from "./terms";
import type { AuditAnswer, Evidence, Term } from "./types";
import { formatBytes, grouped, percent } from "./units";
import { NOUNS, PHRASES } from "./words";

/** What is known of an answer beside its cost. */
export interface Known {
  audit: LedgerAnswer;
  /** Parts of the cost that no row of the ledger has. */
  unlisted: Payer[];
  /** Says what failed first. */
  failure: Node | null;
}

/** What an answer says of its cost. */
interface Cost extends Partial<Known> {
  terms: Term[];
  evidence: Evidence;
  /** The words for one and for several of them, and what follows the cost of one in a sentence. */
  nouns: [string, string];
  phrase: string;
  memory_bytes: number | null;
}

const MOST_OWNERS = 5;
/** Owners below this share of the cost are shown together. */
const LEAST_SHARE = 0.05;

/** Make the section on the cost of an audit. */
export function costSection({ projection, totals }: Pick<AuditAnswer, "projection" | "totals">, page: Page, known: Partial<Known> = {}): HTMLElement {
  return firstSection({
    ...projection, terms: table(projection.terms).rows(), nouns: NOUNS[projection.model], phrase: PHRASES[projection.basis], ...known,
  }, page, [], [momentsTable(projection, page), totalsTable(totals)]);
}

/** Make the first section; `lines` stand below the cost, `details` at the end. */
export function firstSection(cost: Cost, page: Page, lines: Child[], details: Child[]): HTMLElement {
  const { audit, terms, nouns: [noun, nouns], phrase } = cost;
  const costs = new Costs(terms, cost.evidence);
  const one = el("p", { class: "verdict", id: "one" }, `One more ${noun} costs `, el("strong", {}, formatBytes(costs.each)), `${phrase} `, evidenceMark(cost.evidence));
  const verdict = el("p", { class: "verdict", role: "status", id: "verdict" });
  const sum = el("p", { class: "sum", id: "sum" });
  const owners = el("div", { class: "owners" });
  const payers = payersOf(audit, terms, cost.unlisted ?? []);
  page.count.watch((size) => {
    fill(verdict, `${grouped(size)} ${size === 1n ? noun : nouns} ${size === 1n ? "costs" : "cost"} `,
      el("strong", { id: "total", "data-bytes": costs.total(size).toString() }, formatBytes(costs.total(size))));
    // One cost at a time: at N = 1 it is that of one more.
    verdict.hidden = size === 1n;
    fill(sum, size === 1n ? "" : `${grouped(size)} × ${formatBytes(costs.each)}`,
      costs.once ? `${size === 1n ? "and" : " +"} ${formatBytes(costs.once)} that all pay once` : "");
    fill(owners, ownersTable(payers, size));
  });
  const bar = partsBar(terms.filter((term) => !term.is_once), costs.each);
  return answerSection("What it costs", cost.failure, el("div", { class: "verdicts" }, one, verdict, sum), ...lines,
    el("div", { class: "two" }, el("div", {}, el("h3", {}, "Who costs most"), owners),
      audit && el("div", {}, el("h3", {}, "What to do"), savings(audit, page))),
    el("div", { class: "controls" }, countControl(page.count, nouns), fitControl(page.store, costs, cost.memory_bytes, nouns)),
    el("details", { class: "made-of" }, el("summary", {}, `What one ${noun} consists of`), tiles(terms, costs, noun), bar), ...details);
}

// The dearest owners, what all others cost, and the sum.
function ownersTable(payers: Payer[], count: bigint): HTMLElement {
  const isOne = count === 1n;
  // All counts but one rank by what N cost.
  const at = ({ each, once }: Omit<Payer, "name">) => (isOne ? BigInt(each)
    : atCount([{ size_bytes: each, is_once: false }, { size_bytes: once, is_once: true }], count)!);
  const plus = (some: Payer[]) => ({ each: some.reduce((all, one) => all + one.each, 0), once: some.reduce((all, one) => all + one.once, 0) });
  const whole = plus(payers);
  const total = Number(at(whole));
  const sorted = payers.map((one) => ({ ...one, size: Number(at(one)) })).sort((one, other) => other.size - one.size);
  const dear = sorted.filter((one, place) => place < MOST_OWNERS && one.size >= LEAST_SHARE * total && one.size > 0);
  const others = sorted.slice(dear.length).filter((one) => one.size > 0);
  const short = shortOwners(payers.map((one) => one.name));
  const row = (name: string, one: { each: number; once: number }) => {
    const size = at(one);
    return [name, formatBytes(one.each), share(Number(size), total), ...(isOne ? [] : [formatBytes(size)])];
  };
  return plainTable(["owner", "each", "share", ...(isOne ? [] : [`at ${grouped(count)}`])], [
    ...dear.map((one) => row(printable(short(one.name)), one)),
    ...(others.length ? [row(others.length === 1 ? printable(short(others[0].name)) : `${grouped(others.length)} others`, plus(others))] : []),
    row("all", whole)], "Who costs most");
}

function share(part: number, whole: number): HTMLElement {
  const bar = el("span", { class: "bar", "aria-hidden": "true" });
  bar.style.width = `${whole > 0 ? (100 * part) / whole : 0}%`;
  return el("span", { class: "share" }, bar, el("span", { class: "text" }, percent(part, whole)));
}
