// The first section of a comparison: the figures of one process before and after, and their change for N processes.

import { pageChangeSection } from "./cells";
import { changeTree, renamedOwners } from "./changetree";
import { countControl } from "./count";
import { type DiffData, table } from "./data";
import { answerSection, el, evidenceMark, fill, plainTable, prose, section } from "./dom";
import { weakest } from "./evidence";
import { findingsSection } from "./findings";
import { asAudit, memberChangesSection } from "./group";
import { GROWN, SAME, SHRUNK } from "./kinds";
import { objectChangesSection } from "./objects";
import type { Page } from "./page";
import { rootDetails } from "./roots";
import { atCount } from "./terms";
import type { DiffAnswer, FigureChange } from "./types";
import { formatBytes, formatChange, grouped } from "./units";
import { treeView } from "./view";
import { type Changes, waterfall } from "./waterfall";
import { TITLES } from "./words";

/** Make the section on the figures of a comparison. */
export function changeSection(diff: Changes, { count }: Page): HTMLElement {
  const order = Object.keys(TITLES);
  const rows = table(diff.figures).rows().sort((one, other) => order.indexOf(one.name) - order.indexOf(other.name));
  const main = ["per_process_bytes", "per_group_bytes", "private_bytes", "mapped_writable_bytes"]
    .map((name) => rows.find((one) => one.name === name && one.delta_bytes !== null)).find(Boolean);
  const deltaAt = (one: FigureChange, size: bigint) =>
    one.delta_bytes === null ? null : atCount([{ size_bytes: one.delta_bytes, is_once: one.is_once }], size);
  const size = (bytes: number | null) => (bytes === null ? "?" : formatBytes(bytes));
  const change = (bytes: number | bigint | null) => (bytes === null ? "?" : formatChange(bytes));
  const [noun, nouns] = table(diff.members).size ? ["group", "groups"] : ["process", "processes"];
  const verdict = el("p", { class: "verdict", role: "status", id: "verdict" });
  const view = el("div");
  count.watch((many) => {
    const all = main ? deltaAt(main, many) : null;
    fill(verdict, ...(main && all !== null
      ? [`${grouped(many)} ${many === 1n ? `${noun} costs` : `${nouns} cost`} `,
        el("strong", { id: "total", "data-bytes": all.toString() },
          all ? `${formatBytes(all < 0n ? -all : all)} ${all > 0n ? "more" : "less"}` : "the same"),
        main.is_noise ? " (within the spread of the starts)" : ""]
      : ["No figure is known of both."]));
    fill(view, plainTable(["figure", "before", "after", "change", `at ${grouped(many)}`, "known"], rows.map((one) => [
      TITLES[one.name], size(one.old_bytes), size(one.new_bytes), change(one.delta_bytes),
      change(deltaAt(one, many)), evidenceMark(weakest([one.old_evidence, one.new_evidence]))]), "Figures before and after"));
  });
  return answerSection("What changed", verdict, ...rootDetails(diff),
    el("div", { class: "two steps" }, waterfall(diff, main), view), countControl(count, nouns));
}

/** Make the sections on what changed. */
export function changeSections(data: DiffData, page: Page): (Node | null)[] {
  const { diff, old_variables, variables } = data;
  const [old, audit] = [asAudit(data.old), asAudit(data.audit)];
  const pageBytes = audit.target.page_bytes;
  return [
    section("ledger", "Where it changed",
      el("p", {}, `${diff.same_count} rows are as before.`),
      table(diff.diff).size
        ? treeView(page.store, "ledger", changeTree(diff), "What changed", [[GROWN, "grew"], [SHRUNK, "shrank"], [SAME, "as much as before"]])
        : el("p", { class: "empty" }, "No row differs.")),
    old.target.page_bytes === pageBytes
      ? pageChangeSection(page.store, { maps: old.page_maps, variables: old_variables }, { maps: audit.page_maps, variables }, pageBytes, renamedOwners(diff))
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
