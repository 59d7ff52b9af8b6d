// The sections of a comparison on what changed, part by part.

import { pageChangeSection } from "./cells";
import { changeTree, renamedOwners } from "./changetree";
import type { DiffData } from "./data";
import { el, prose, section } from "./dom";
import { findingsSection } from "./findings";
import { asAudit } from "./group";
import { GROWN, SAME, SHRUNK } from "./kinds";
import { memberChangesSection } from "./members";
import { objectChangesSection } from "./objects";
import type { Page } from "./page";
import { table } from "./table";
import type { DiffAnswer } from "./types";
import { treeView } from "./view";

/** Make the sections on what changed. */
export function changeSections(data: DiffData, page: Page): (Node | null)[] {
  const { diff, old_maps, maps } = data;
  const [old, audit] = [asAudit(data.old), asAudit(data.audit)];
  const pageBytes = audit.target.page_bytes;
  return [
    section("ledger", "Where it changed",
      el("p", {}, `${diff.same_count} rows are as before.`),
      table(diff.diff).size
        ? treeView(page.store, "ledger", changeTree(diff), "What changed", [[GROWN, "grew"], [SHRUNK, "shrank"], [SAME, "as much as before"]])
        : el("p", { class: "empty" }, "No row differs.")),
    old.target.page_bytes === pageBytes
      ? pageChangeSection(page.store, { maps: old.page_maps, details: old_maps }, { maps: audit.page_maps, details: maps }, pageBytes, renamedOwners(diff))
      : null,
    memberChangesSection(diff),
    objectChangesSection(diff, old, audit, page),
    ...findingChanges(diff, page),
  ];
}

function findingChanges(diff: DiffAnswer, page: Page): (Node | null)[] {
  if (!diff.compared_rules.length) {
    return [section("findings", "Findings",
      el("p", { class: "empty" }, ...prose("They are not compared: one of the two was not looked into for them (`footprint audit --findings`).")))];
  }
  return [
    findingsSection("new", "Findings that are new", table(diff.new_findings), page, false),
    findingsSection("gone", "Findings that are gone", table(diff.fixed_findings), page, false),
  ];
}
