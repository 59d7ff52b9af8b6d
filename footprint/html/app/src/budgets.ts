// The budgets of a check.

import { el, plainTable, section } from "./dom";
import { printable } from "./names";
import { table } from "./table";
import type { BudgetResult, CheckAnswer } from "./types";
import { formatBytes, grouped } from "./units";

/** Say which budget fails first; null where none fails. */
export function budgetFailure(check: CheckAnswer | undefined): HTMLElement | null {
  const failing = check ? table(check.budgets).rows().filter((one) => one.fails) : [];
  if (!failing.length) return null;
  const [first] = failing;
  const amount = (size: number) => (first.unit === "bytes" ? formatBytes(size) : grouped(size));
  const more = failing.length > 1 ? ` ${grouped(failing.length - 1)} more ${failing.length === 2 ? "is" : "are"} exceeded.` : "";
  return el("p", { class: "failure", role: "alert" }, el("strong", {}, `Budget exceeded: ${printable(first.key)}`),
    ` is ${amount(first.value)}, ${amount(first.value - first.limit)} above its limit of ${amount(first.limit)}.${more}`);
}

/** Make the section on budgets, those that fail first, as `footprint check` lists them. */
export function budgetsSection(check: CheckAnswer): HTMLElement {
  const rows = table(check.budgets).rows();
  const nouns = "group" in check ? ["group", "groups"] : ["process", "processes"];
  const failed = check.checks_failed;
  const result = rows.length === 0 ? "No budget is set."
    : failed ? `${grouped(failed)} of ${grouped(rows.length)} exceeded.`
    : rows.length === 1 ? "The budget holds." : `All ${grouped(rows.length)} hold.`;
  return section("budgets", "Budgets",
    el("p", { class: failed ? "wrong" : "" }, result),
    el("p", { class: "small" }, `Read from ${printable(check.budget_file)}, for ${grouped(check.count)} ${nouns[check.count === 1 ? 0 : 1]}.`),
    rows.length ? plainTable(["budget", "is", "limit", "room", "state", "most of it"], rows.map(cells), "Budgets") : null);
}

function cells(one: BudgetResult): (string | HTMLElement)[] {
  const amount = (size: number) => (one.unit === "bytes" ? formatBytes(size) : grouped(size));
  const room = one.limit - one.value;
  const word = one.fails ? "exceeded" : one.is_exceeded ? "waived" : "holds";
  const waiver = one.waiver
    ? ` (${printable(one.waiver.reason)}, ${one.waiver.is_expired ? "expired" : "until"} ${one.waiver.expires})` : "";
  const state = el("span", { class: one.fails ? "wrong" : "" }, one.fails ? el("strong", {}, word) : word, waiver);
  const most = one.contributors.map((part) => `${printable(part.name)} ${formatBytes(part.size_bytes)}`).join(", ");
  return [printable(one.key), amount(one.value), amount(one.limit), room < 0 ? `-${amount(-room)}` : amount(room), state, most];
}
