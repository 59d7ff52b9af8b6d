// A group of processes: what one more group and one more worker cost, its processes, and how these changed.

import { table, type LedgerAnswer } from "./data";
import { el, plainTable, section } from "./dom";
import { firstSection, type Known } from "./firstscreen";
import { printable } from "./names";
import type { Page } from "./page";
import type { Payer } from "./payers";
import { totalsTable } from "./totals";
import type { AuditAnswer, DiffAnswer, GroupAnswer } from "./types";
import { formatBytes, formatChange, grouped } from "./units";
import { TITLES } from "./words";

const MOST_SHOWN = 200;

/** Return whether an answer is about a group. */
export function isGroup(answer: AuditAnswer | GroupAnswer): answer is GroupAnswer {
  return "group" in answer;
}

/** Return a group as if one process held what all its processes hold, for the parts of the report that show a ledger. */
export function asAudit(group: AuditAnswer | GroupAnswer): LedgerAnswer {
  if (!isGroup(group)) return group;
  const processes = table(group.processes);
  return {
    ...group,
    target: {
      name: group.target.name,
      pid: null,
      command: processes.column("command")[0] ?? "",
      source: [...new Set(processes.column("source"))].join(", "),
      is_live: processes.column("is_live").some(Boolean),
      mapping_count: processes.column("mapping_count").reduce((sum, one) => sum + one, 0),
      page_bytes: processes.column("page_bytes")[0] ?? 4096,
    },
    totals: group.group,
    heap_account: null,
    allocator: null,
  };
}

/** Return what the processes of a group share: its rows have what each holds alone. */
export function sharedParts({ group }: GroupAnswer): Payer[] {
  return (["shared_between_bytes", "own_shared_bytes"] as const).map((name) => ({ name: TITLES[name], each: group[name] ?? 0, once: 0 }))
    .filter((one) => one.each > 0);
}

/** Make the section on the cost of a group. */
export function groupCostSection(
  { group, projection, classes }: Pick<GroupAnswer, "group" | "projection" | "classes">, page: Page, known: Partial<Known> = {},
): HTMLElement {
  const totals = totalsTable(group, "the group");
  if (projection === null) return section("answer", "What it costs", known.failure, totals);
  const worker = table(classes).column("parent_pids")[0]?.length || projection.model === "fork" ? "worker" : "process";
  const line = el("p", { id: "worker" }, `One more ${worker} costs `, el("strong", {}, formatBytes(projection.per_worker_bytes)), ".");
  return firstSection({ ...projection, terms: table(projection.terms).rows(), nouns: ["group", "groups"], phrase: "", ...known },
    page, [line], [totals]);
}

/** Make the table of the processes of a group. */
export function processesSection({ processes }: GroupAnswer): HTMLElement {
  const rows = table(processes).rows();
  const size = (bytes: number | null) => (bytes ? formatBytes(bytes) : "-");
  return section("processes", "Processes",
    plainTable(["pid", "private", "COW-shared", "kernel", "per process", "command"], rows.slice(0, MOST_SHOWN).map((one) => [
      String(one.pid ?? "-"), size(one.totals.private_bytes), size(one.totals.shared_with_relatives_bytes),
      size(one.totals.kernel_bytes), size(one.totals.per_process_bytes), printable(one.command.slice(0, 200))]), "Processes"),
    rows.length > MOST_SHOWN ? el("p", {}, `${grouped(rows.length - MOST_SHOWN)} more are in the JSON.`) : null);
}

/** Make the table of the processes that came, went or changed; null where two processes are compared. */
export function memberChangesSection({ members }: DiffAnswer): HTMLElement | null {
  const all = table(members).rows();
  if (!all.length) return null;
  const rows = all.filter((one) => one.status !== "same");
  const size = (bytes: number | null) => (bytes === null ? "?" : formatBytes(bytes));
  return section("processes", "Processes",
    el("p", {}, `${grouped(all.length - rows.length)} are as before.`),
    rows.length ? plainTable(["change", "before", "after", "what", "pid", "command"], rows.slice(0, MOST_SHOWN).map((one) => [
      one.delta_bytes === null ? "?" : formatChange(one.delta_bytes), size(one.old_bytes), size(one.new_bytes), one.status,
      String(one.pid ?? one.old_pid ?? "-"), printable(one.command.slice(0, 200))]), "Processes that changed") : null,
    rows.length > MOST_SHOWN ? el("p", {}, `${grouped(rows.length - MOST_SHOWN)} more are in the JSON.`) : null);
}
