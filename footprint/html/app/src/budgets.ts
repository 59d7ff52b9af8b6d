// The budgets of a check.

import { el, plainTable, section } from "./dom";
import { printable } from "./names";
import { table } from "./table";
import type { BudgetResult, CheckAnswer } from "./types";
import { formatBytes, formatChange, grouped } from "./units";

const MOST_FAILING = 3;
const MOST_PARTS = 3;
/** What fails without a limit: a run that failed, and what a watch cannot tell. */
const OF_NO_LIMIT = ["run", "watch"];

/** Say what fails, as `footprint check` does in its last line; null where nothing fails. */
export function budgetFailure(check: CheckAnswer | undefined): HTMLElement | null {
  if (!check?.checks_failed) return null;
  const failing = table(check.budgets).rows().filter((one) => one.fails && one.contributors.length && !OF_NO_LIMIT.includes(one.key));
  const rows = failing.slice(0, MOST_FAILING).map((one) => [printable(one.key), amount(one, one.value), amount(one, one.value - one.limit), contributors(one)]);
  return el("div", { class: "failure", role: "alert" }, el("p", {}, el("strong", {}, printable(check.verdict))),
    rows.length ? plainTable(["exceeded", "is", "too much", "what makes it so"], rows, "What is exceeded, and what makes it so") : null);
}

const amount = (one: BudgetResult, size: number) => (one.unit === "bytes" ? formatBytes(size) : `${grouped(size)}${one.unit === "microseconds" ? " us" : ""}`);

function contributors(one: BudgetResult): string {
  return one.contributors.slice(0, MOST_PARTS).map((part) => `${printable(part.name)}${part.size_bytes ? ` ${one.is_growth ? formatChange(part.size_bytes) : formatBytes(part.size_bytes)}` : ""}`).join(", ");
}

/** Make the section on budgets, those that fail first, as `footprint check` lists them. */
export function budgetsSection(check: CheckAnswer): HTMLElement {
  const rows = table(check.budgets).rows();
  const nouns = "group" in check ? ["group", "groups"] : ["process", "processes"];
  const limits = rows.filter((one) => !OF_NO_LIMIT.includes(one.key));
  const failed = limits.filter((one) => one.fails).length;
  const result = limits.length === 0 ? "No budget is set."
    : failed ? `${grouped(failed)} of ${grouped(limits.length)} exceeded.`
    : limits.length === 1 ? "The budget holds." : `All ${grouped(limits.length)} hold.`;
  return section("budgets", "Budgets",
    el("p", { class: failed ? "wrong" : "" }, result),
    el("p", { class: "small" }, `Read from ${printable(check.budget_file)}, for ${grouped(check.count)} ${nouns[check.count === 1 ? 0 : 1]}.`),
    rows.length ? plainTable(["budget", "is", "limit", "room", "state", "what makes it so"], rows.map(cells), "Budgets") : null);
}

function cells(one: BudgetResult): (string | HTMLElement)[] {
  const room = one.limit - one.value;
  const word = one.fails ? "exceeded" : one.is_exceeded ? "waived" : "holds";
  const waiver = one.waiver
    ? ` (${printable(one.waiver.reason)}, ${one.waiver.is_expired ? "expired" : "until"} ${one.waiver.expires})` : "";
  const state = el("span", { class: one.fails ? "wrong" : "" }, one.fails ? el("strong", {}, word) : word, waiver);
  return [printable(one.key), amount(one, one.value), amount(one, one.limit), room < 0 ? `-${amount(one, -room)}` : amount(one, room), state, contributors(one)];
}
