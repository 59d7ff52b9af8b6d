// The report: its sections, in the order in which they are shown.

import { budgetsSection } from "./budgets";
import { pageChangeSection, pageMapSection } from "./cells";
import { changeSection, sideSwitch, type Side } from "./change";
import { costSection } from "./cost";
import { Count } from "./count";
import { readData, table, written, type AuditData, type DiffData, type GroupData, type HeapData, type LedgerAnswer } from "./data";
import { choice, el, fill, save } from "./dom";
import { findingsSection, notesSection, originsSection } from "./findings";
import { heapAccountSection, profileChangeSection, profileSections, profilesTable } from "./heap";
import { changeTree, GROWN, isVirtual, ledgerTree, privateByOwner, renamedOwners, SAME, SHRUNK, UNUSED, USED } from "./ledger";
import { printable } from "./names";
import { needTree, objectChangeTree, objectTree } from "./objects";
import { nextTask } from "./scheduler";
import type { AuditAnswer, CheckAnswer, DiffAnswer, GroupAnswer, HeapAnswer } from "./types";
import { asAudit, groupCostSection, memberChangesSection, processesSection } from "./group";
import { kindLegend, treeView } from "./view";

/** Makes a part of the report; null where the answer has no data for it. */
type Part = () => Node | null;

function header(title: string, lead: string, answer: AuditAnswer | CheckAnswer | DiffAnswer | GroupAnswer | HeapAnswer, name = "report"): HTMLElement {
  const last = name.split(/[\s/]/).filter(Boolean).pop() ?? "report";
  const file = `footprint-${last}`.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, 80);
  return el("header", {}, el("h1", {}, title), lead ? el("p", { class: "lead" }, printable(lead)) : null,
    el("button", { type: "button", id: "download", onclick: () => save(written(answer), `${file}.json`, "application/json") }, "Save as JSON"));
}

function titleOf({ target }: LedgerAnswer): [title: string, command: string] {
  const what = target.pid === null ? printable(target.name) : `process ${target.pid}`;
  return [what.length > 120 ? `${what.slice(0, 120)}…` : what, target.command.slice(0, 2000)];
}

function ledgerSection(audit: LedgerAnswer): HTMLElement {
  const tree = ledgerTree(audit);
  const title = isVirtual(audit) ? "Where the mapped writable memory is" : "Where the memory is";
  return el("section", { class: "section", id: "ledger" }, el("h2", {}, title),
    table(audit.ledger).size ? treeView(tree, title, kindLegend(tree)) : el("p", { class: "empty" }, "The ledger is empty: no memory is known of it."));
}

function librariesSection(audit: LedgerAnswer): HTMLElement | null {
  const objects = table(audit.objects);
  if (!objects.size) return null;
  const view = el("div");
  const show = (order: "held" | "needs") => fill(view, ...(order === "held"
    ? [el("p", {}, "Below each object are the objects that only it brings in."),
      treeView(objectTree(audit), "Objects", [[USED, "used"], [UNUSED, "unused, or leaves with what is"]])]
    : [el("p", {}, "Below each object are the objects that it needs, with the number of symbols that it uses of them. The needs of an object are listed below its first row only; its other rows are marked `repeated`."),
      treeView(needTree(audit), "Needs", [], null)]));
  show("held");
  return el("section", { class: "section", id: "libraries" }, el("h2", {}, "Objects, and what would leave with each"),
    objects.column("needs").some((one) => one !== null)
      ? el("div", { class: "tools" }, choice("Order of objects", [["held", "Who holds whom"], ["needs", "Who needs whom"]] as const, "held", show))
      : null,
    view);
}

function auditFindings(audit: LedgerAnswer, count: Count): HTMLElement {
  return findingsSection("Findings", table(audit.findings), count,
    table(audit.searched_rules).size ? "Nothing was found that it could do without."
    : audit.target.is_live ? "What it could do without was not looked for: `footprint audit --findings` looks."
    : "What it could do without was not looked for: that needs the live process, or the program.");
}

function auditReport(data: AuditData): Part[] {
  const { audit, check } = data;
  const count = new Count(BigInt(audit.projection.count || 1));
  return [
    () => header(...titleOf(audit), check ?? audit, audit.target.command || audit.target.name),
    () => costSection(audit, count),
    () => check ? budgetsSection(check) : null, () => ledgerSection(audit),
    () => audit.heap_account && heapAccountSection(audit.heap_account),
    () => pageMapSection({ maps: audit.page_maps, variables: data.variables }, audit.target.page_bytes, privateByOwner(audit)),
    () => librariesSection(audit), () => auditFindings(audit, count),
    () => notesSection(table(audit.notes), data.warning), () => originsSection(audit),
  ];
}

function groupReport(data: GroupData): Part[] {
  const { audit: group, check } = data;
  const audit = asAudit(group);
  const count = new Count(BigInt(group.projection?.count || 1));
  return [
    () => header(`${table(group.processes).size} processes`, group.target.name, check ?? group, audit.target.command || group.target.name),
    () => groupCostSection(group, count),
    () => check ? budgetsSection(check) : null, () => ledgerSection(audit),
    () => processesSection(group), () => librariesSection(audit), () => auditFindings(audit, count),
    () => notesSection(table(group.notes), data.warning), () => originsSection(audit),
  ];
}

function objectChangesSection(diff: DiffAnswer, old: LedgerAnswer, now: LedgerAnswer): HTMLElement | null {
  if (!table(old.objects).size || !table(now.objects).size) return null;
  const tree = objectChangeTree(old, now, diff);
  return el("section", { class: "section", id: "libraries" }, el("h2", {}, "Objects that changed"),
    el("p", {}, "Each is below the object that holds it now, or held it before; new ones are below the library that they came with. Retained is the change of the object and all that it holds."),
    treeView(tree, "Objects before and after", [[GROWN, "grew"], [SHRUNK, "shrank"]]));
}

function changeView(data: DiffData, count: Count): (Node | null)[] {
  const { diff, old_variables, variables } = data;
  const [old, audit] = [asAudit(data.old), asAudit(data.audit)];
  const pageBytes = audit.target.page_bytes;
  return [
    el("section", { class: "section", id: "ledger" }, el("h2", {}, "Where it changed"),
      el("p", {}, `${diff.same_count} rows are as before.`),
      table(diff.diff).size
        ? treeView(changeTree(diff), "What changed", [[GROWN, "grew"], [SHRUNK, "shrank"], [SAME, "as much as before"]])
        : el("p", { class: "empty" }, "No row differs.")),
    old.target.page_bytes === pageBytes
      ? pageChangeSection({ maps: old.page_maps, variables: old_variables }, { maps: audit.page_maps, variables }, pageBytes, renamedOwners(diff))
      : null,
    memberChangesSection(diff),
    objectChangesSection(diff, old, audit),
    ...findingChanges(diff, count),
  ];
}

function findingChanges(diff: DiffAnswer, count: Count): Node[] {
  if (!diff.compared_rules.length) {
    return [el("section", { class: "section", id: "findings" }, el("h2", {}, "Findings"),
      el("p", { class: "empty" }, "They are not compared: one of the two was not looked into for them (`footprint audit --findings`)."))];
  }
  return [
    findingsSection("Findings that are new", table(diff.new_findings), count, "None."),
    findingsSection("Findings that are gone", table(diff.fixed_findings), count, "None."),
  ];
}

function diffReport(data: DiffData): Part[] {
  const { diff } = data;
  const [old, audit] = [asAudit(data.old), asAudit(data.audit)];
  const count = new Count(BigInt(diff.count || 1));
  const view = el("div");
  const show = (side: Side) => {
    if (side === "change") return fill(view, ...changeView(data, count));
    const [one, variables] = side === "before" ? [old, data.old_variables] : [audit, data.variables];
    fill(view, ledgerSection(one),
      pageMapSection({ maps: one.page_maps, variables }, one.target.page_bytes, privateByOwner(one)),
      one.heap_account && heapAccountSection(one.heap_account), librariesSection(one), auditFindings(one, count));
  };
  show("change");
  const [before, after] = [old, audit].map(titleOf);
  return [
    () => header("Before and after", `${before[0]} ${before[1]} → ${after[0]} ${after[1]}`, diff),
    () => changeSection(diff, count), () => el("div", { class: "sides" }, sideSwitch(show)), () => view,
    () => notesSection(table(diff.notes), data.warning),
    () => originsSection(old, "How the figures before were obtained"),
    () => originsSection(audit, "How those after were obtained"),
  ];
}

function heapReport(data: HeapData): Part[] {
  const { heap } = data;
  const profiles = table(heap.profiles);
  const files = Object.keys(data.named);
  const view = el("div");
  const show = (file: string) => fill(view, ...profileSections(data, file));
  const select = el("select", { id: "file", onchange: () => show(files[select.selectedIndex]) },
    ...files.map((file) => el("option", {}, printable(file))));
  show(files[0]);
  return [
    () => header("Heap over time", profiles.column("command")[0] ?? "", heap),
    () => (profiles.size > 1 ? profilesTable(data) : null),
    () => (profiles.size > 1 ? profileChangeSection(data) : null),
    () => (files.length > 1 ? el("p", { class: "tools" }, el("label", { for: "file" }, "Profile"), select) : null),
    () => view,
    () => (table(heap.findings).size ? findingsSection("Findings", table(heap.findings), new Count(1n), "") : null),
    () => notesSection(table(heap.notes), data.warning),
  ];
}

function partsOf(data: AuditData | DiffData | GroupData | HeapData): Part[] {
  switch (data.kind) {
    case "audit": return auditReport(data);
    case "diff": return diffReport(data);
    case "group": return groupReport(data);
    case "heap": return heapReport(data);
  }
}

/** The place of the last part that is visible at first: the ledger, or what takes its place. */
const LAST_VISIBLE = 3;

async function start(): Promise<void> {
  const app = document.getElementById("app")!;
  const text = document.getElementById("static")!;
  const { dataset } = document.documentElement;
  try {
    // The visible parts can be used while the others are made, one after the other.
    for (const [place, part] of partsOf(await readData()).entries()) {
      if (place > LAST_VISIBLE) await nextTask();
      const made = part();
      if (made) app.append(made);
      if (place !== LAST_VISIBLE) continue;
      text.classList.add("paper");
      app.hidden = false;
      dataset.interactive = String(Math.round(performance.now()));
    }
    dataset.ready = String(Math.round(performance.now()));
  } catch (error) {
    app.hidden = true;
    text.classList.remove("paper");
    text.prepend(el("p", { class: "warning" },
      `The report could not be drawn in this browser (${String(error).slice(0, 200)}); it follows as text.`));
    dataset.ready = "failed";
    throw error;
  }
}

void start();
