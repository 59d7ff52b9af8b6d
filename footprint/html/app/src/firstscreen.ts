// The first section of an audit: what one more costs and what N cost, who costs most, and what to do about it.

import type { Advice } from "./answerdata";
import { Costs, momentsTable, partsBar, tiles } from "./cost";
import { countControl } from "./count";
import type { LedgerAnswer } from "./data";
import { answerSection, type Child, el, evidenceMark, fill } from "./dom";
import { fitControl } from "./fit";
import { printable, shortened, shortOwners } from "./names";
import { payersTable } from "./owners";
import type { Page } from "./page";
import { type Payer, termPayers } from "./payers";
import { savings } from "./savings";
import { type Rows, table } from "./table";
import { totalsTable } from "./totals";
import type { AuditAnswer, Evidence, FitLimit, Term } from "./types";
import { formatBytes, grouped } from "./units";
import { NOUNS, PHRASES } from "./words";

const LONGEST_NAME = 80; // characters on the first screen

/** What is known of an answer beside its cost. */
export interface Known {
  audit: LedgerAnswer;
  /** Who pays for it, and what to do first. */
  payers: Payer[];
  advice: Advice | undefined;
  /** Says what failed first. */
  failure: Node | null;
  /** The limits on tasks where the audit was made. */
  tasks: Rows<FitLimit> | undefined;
}

/** What an answer says of its cost. */
interface Cost extends Partial<Known> {
  terms: Term[];
  evidence: Evidence;
  /** The words for one and for several of them, and what follows the cost of one in a sentence. */
  nouns: [string, string];
  phrase: string;
  memory_bytes: number | null;
  limits: Rows<FitLimit>;
}

/** Make the section on the cost of an audit. */
export function costSection({ projection, totals }: Pick<AuditAnswer, "projection" | "totals">, page: Page, known: Partial<Known> = {}): HTMLElement {
  return firstSection({
    ...projection, terms: table(projection.terms).rows(), nouns: NOUNS[projection.model], phrase: PHRASES[projection.basis], ...known,
  }, page, [], [momentsTable(projection, page), totalsTable(totals, "one process")]);
}

/** Make the first section; `lines` stand below the cost, `details` at the end. */
export function firstSection(cost: Cost, page: Page, lines: Child[], details: Child[]): HTMLElement {
  const { audit, terms, nouns: [noun, nouns], phrase } = cost;
  const costs = new Costs(terms, cost.evidence);
  const one = el("p", { class: "verdict", id: "one" }, `One more ${noun} costs `, el("strong", {}, formatBytes(costs.each)), `${phrase} `, evidenceMark(cost.evidence));
  const verdict = el("p", { class: "verdict", role: "status", id: "verdict" });
  const sum = el("p", { class: "sum", id: "sum" });
  const owners = el("div", { class: "owners" });
  const payers = cost.payers?.length ? cost.payers : termPayers(terms);
  const short = shortOwners(payers.map((one) => one.name));
  const nameIn = (one: Payer) => printable(shortened(short(one.name), LONGEST_NAME));
  const sharer = payers.reduce((most, one) => (one.once_bytes > most.once_bytes ? one : most), { name: "", each_bytes: 0, once_bytes: 0, is_owner: false });
  const paidMost = BigInt(sharer.once_bytes) < costs.once ? `, ${formatBytes(sharer.once_bytes)} of it for ${nameIn(sharer)}` : "";
  const title = audit ? "Who costs most" : `What one ${noun} consists of`;
  page.count.watch((size) => {
    fill(verdict, `${grouped(size)} ${size === 1n ? noun : nouns} ${size === 1n ? "costs" : "cost"} `,
      el("strong", { id: "total", "data-bytes": costs.total(size).toString() }, formatBytes(costs.total(size))));
    // One cost at a time: at N = 1 it is that of one more.
    verdict.hidden = size === 1n;
    fill(sum, size === 1n ? "" : `${grouped(size)} × ${formatBytes(costs.each)}`,
      costs.once ? `${size === 1n ? "and" : " +"} ${formatBytes(costs.once)} that all pay once${paidMost}` : "");
    fill(owners, payersTable(payers, costs, size, nameIn, audit ? "owner" : "part", title));
  });
  return answerSection("What it costs", cost.failure, el("div", { class: "verdicts" }, one, verdict, sum), ...lines,
    el("div", { class: "two" }, el("div", {}, el("h3", {}, title), owners),
      audit && el("div", {}, el("h3", {}, "What to do"), savings(audit, cost.advice, page))),
    el("div", { class: "controls" }, countControl(page.count, nouns), fitControl(page.store, costs, cost.memory_bytes, [cost.limits, cost.tasks].flatMap((one) => table(one).rows()), nouns)),
    el("details", { class: "made-of" }, el("summary", {}, "How each part is known"), tiles(terms, costs, noun), partsBar(terms.filter((term) => !term.is_once), costs.each)), ...details);
}
