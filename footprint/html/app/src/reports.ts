// The reports by kind: their sections, in the order in which they are shown.

import { answerReport } from "./answer";
import { budgetFailure, budgetsSection } from "./budgets";
import { pageMapSection } from "./cells";
import { changeSection, changeSections } from "./change";
import { choice } from "./choice";
import { table, type AuditData, type DiffData, type GroupData, type HeapData, type LedgerAnswer, type ReportData } from "./data";
import { el, fill } from "./dom";
import { findingsSection } from "./findings";
import { notesSection, originsSection } from "./origins";
import { asAudit, groupCostSection, processesSection, sharedParts } from "./group";
import { costSection } from "./firstscreen";
import { header, placeOf } from "./header";
import { profileSections } from "./heap";
import { heapAccountSection, profileChangeSection, profilesTable } from "./profiles";
import { privateByOwner } from "./grouping";
import { ledgerSection } from "./ledger";
import { printable } from "./names";
import { librariesSection } from "./objects";
import { makePage, type Page } from "./page";
import { type Payer, unlistedTerms } from "./payers";
import type { Store } from "./store";
import type { AuditAnswer } from "./types";

/** Makes a part of the report; null where the answer has no data for it. */
export type Part = () => Node | null;

// The parts of what one more costs that no row of the ledger has.
function unlisted(audit: AuditAnswer): Payer[] {
  const { model, terms } = audit.projection;
  const more = model === "exec" ? unlistedTerms(audit, table(terms).rows()) : [];
  return more.map((term) => ({ name: term.name, each: term.size_bytes, once: 0 }));
}

function auditReport(data: AuditData, store: Store): Part[] {
  const { audit, check } = data;
  const page = makePage(store, audit.projection.count);
  return [
    () => header(store, [audit.target.command, placeOf(audit.host, data.made)], check ?? audit),
    () => costSection(audit, page, { audit, unlisted: unlisted(audit), failure: budgetFailure(check), tasks: data.limits }),
    () => check ? budgetsSection(check) : null, () => ledgerSection(audit, page, unlisted(audit).map((one) => ({ name: one.name, bytes: one.each }))),
    () => audit.heap_account && heapAccountSection(audit.heap_account, page),
    () => pageMapSection(store, { maps: audit.page_maps, variables: data.variables }, audit.target.page_bytes, privateByOwner(audit)),
    () => librariesSection(audit, page), () => findingsSection("findings", "Findings", table(audit.findings), page),
    () => notesSection(table(audit.notes), data.warning), () => originsSection(audit),
  ];
}

function groupReport(data: GroupData, store: Store): Part[] {
  const { audit: group, check } = data;
  const audit = asAudit(group);
  const page = makePage(store, group.projection?.count ?? 1);
  return [
    () => header(store, [group.target.name, placeOf(group.host, data.made)], check ?? group),
    () => groupCostSection(group, page, { audit, unlisted: sharedParts(group), failure: budgetFailure(check), tasks: data.limits }),
    () => check ? budgetsSection(check) : null, () => ledgerSection(audit, page, sharedParts(group).map((one) => ({ name: one.name, bytes: one.each }))),
    () => processesSection(group), () => librariesSection(audit, page), () => findingsSection("findings", "Findings", table(audit.findings), page),
    () => notesSection(table(group.notes), data.warning), () => originsSection(audit),
  ];
}

// One of the two audits that are compared.
function sideSections(audit: LedgerAnswer, variables: DiffData["variables"], page: Page): (Node | null)[] {
  return [
    ledgerSection(audit, page),
    pageMapSection(page.store, { maps: audit.page_maps, variables }, audit.target.page_bytes, privateByOwner(audit)),
    audit.heap_account && heapAccountSection(audit.heap_account, page), librariesSection(audit, page), findingsSection("findings", "Findings", table(audit.findings), page),
  ];
}

function diffReport(data: DiffData, store: Store): Part[] {
  const { diff } = data;
  const [old, audit] = [asAudit(data.old), asAudit(data.audit)];
  const page = makePage(store, diff.count);
  const view = el("div");
  const side = choice(store, "side", "Show", [["change", "Change"], ["before", "Before"], ["after", "After"]] as const);
  store.remake(["side"], () => fill(view, ...(side.value === "change" ? changeSections(data, page)
    : side.value === "before" ? sideSections(old, data.old_variables, page) : sideSections(audit, data.variables, page))));
  return [
    () => header(store, [old.target.command, audit.target.command, placeOf(audit.host, data.made)], diff),
    () => changeSection(diff, page), () => el("div", { class: "sides" }, side.element), () => view,
    () => notesSection(table(diff.notes), data.warning),
    () => originsSection(old, "How the figures before were obtained", "origins-before"),
    () => originsSection(audit, "How those after were obtained"),
  ];
}

function heapReport(data: HeapData, store: Store): Part[] {
  const { heap } = data;
  const page = makePage(store, 1);
  const profiles = table(heap.profiles);
  const files = Object.keys(data.named);
  const view = el("div");
  const place = () => Math.max(0, Number(store.get("file") ?? 0) % files.length || 0);
  const select = el("select", { id: "file", onchange: () => {
    for (const name of ["moment", "before"]) store.set(name, null);
    store.set("file", select.selectedIndex ? String(select.selectedIndex) : null);
  } }, ...files.map((file) => el("option", {}, printable(file))));
  store.remake(["file"], () => {
    select.selectedIndex = place();
    fill(view, ...profileSections(data, files[place()], page));
  });
  return [
    () => header(store, [profiles.column("command")[0] ?? "", placeOf({}, data.made)], heap),
    () => (profiles.size > 1 ? profilesTable(data) : null),
    () => (profiles.size > 1 ? profileChangeSection(data, page) : null),
    () => (files.length > 1 ? el("p", { class: "tools" }, el("label", { for: "file" }, "Profile"), select) : null),
    () => view,
    () => findingsSection("findings", "Findings", table(heap.findings), page),
    () => notesSection(table(heap.notes), data.warning),
  ];
}

// The answer about a program that was run is its audit.
const isAudit = (answer: object): answer is AuditAnswer => "ledger" in answer;

/** Return the parts of a report. */
export function partsOf(data: ReportData, store: Store): Part[] {
  switch (data.kind) {
    case "audit": return auditReport(data, store);
    case "diff": return diffReport(data, store);
    case "group": return groupReport(data, store);
    case "heap": return heapReport(data, store);
    case "answer": return isAudit(data.answer)
      ? auditReport({ kind: "audit", audit: data.answer, variables: {}, warning: data.warning, failure: data.failure, made: data.made }, store) : answerReport(data, store);
  }
}
