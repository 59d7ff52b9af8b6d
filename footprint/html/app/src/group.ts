// A group of processes: what one more group and one more worker cost.

import type { LedgerAnswer } from "./data";
import { el, section } from "./dom";
import { firstSection, type Known } from "./firstscreen";
import type { Page } from "./page";
import { table } from "./table";
import { totalsTable } from "./totals";
import type { AuditAnswer, GroupAnswer } from "./types";
import { formatBytes } from "./units";

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
