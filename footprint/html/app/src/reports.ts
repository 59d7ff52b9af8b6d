// The reports by kind: their sections, in the order in which they are shown.

import { answerReport } from "./answer";
import { budgetFailure, budgetsSection } from "./budgets";
import { pageMapSection } from "./cells";
import type { AuditData, GroupData, ReportData } from "./data";
import { diffReport } from "./diffreport";
import { findingsSection } from "./findings";
import { costSection } from "./firstscreen";
import { asAudit, groupCostSection } from "./group";
import { header, placeOf } from "./header";
import { heapReport } from "./heapreport";
import { ledgerSection } from "./ledger";
import { processesSection } from "./members";
import { librariesSection } from "./objects";
import { notesSection, originsSection } from "./origins";
import { makePage, type Part } from "./page";
import { unlisted } from "./payers";
import { heapAccountSection } from "./profiles";
import type { Store } from "./store";
import { table } from "./table";
import type { AuditAnswer } from "./types";

function auditReport(data: AuditData, store: Store): Part[] {
  const { audit, check } = data;
  const page = makePage(store, check?.count ?? audit.projection.count);
  const payers = table(data.payers).rows();
  return [
    () => header(store, [audit.target.command, placeOf(audit.host, data.made)], check ?? audit),
    () => costSection(audit, page, { audit, payers, advice: data.advice, failure: budgetFailure(check), tasks: data.limits }),
    () => check ? budgetsSection(check) : null, () => ledgerSection(audit, page, unlisted(payers)),
    () => audit.heap_account && heapAccountSection(audit.heap_account, page),
    () => pageMapSection(store, { maps: audit.page_maps, details: data.maps }, audit.target.page_bytes),
    () => librariesSection(audit, page), () => findingsSection("findings", "Findings", table(audit.findings), page),
    () => notesSection(table(audit.notes), data.warning), () => originsSection(audit),
  ];
}

function groupReport(data: GroupData, store: Store): Part[] {
  const { audit: group, check } = data;
  const audit = asAudit(group);
  const page = makePage(store, check?.count ?? group.projection?.count ?? 1);
  const payers = table(data.payers).rows();
  return [
    () => header(store, [group.target.name, placeOf(group.host, data.made)], check ?? group),
    () => groupCostSection(group, page, { audit, payers, advice: data.advice, failure: budgetFailure(check), tasks: data.limits }),
    () => check ? budgetsSection(check) : null, () => ledgerSection(audit, page, unlisted(payers)),
    () => processesSection(group), () => librariesSection(audit, page), () => findingsSection("findings", "Findings", table(audit.findings), page),
    () => notesSection(table(group.notes), data.warning), () => originsSection(audit),
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
      ? auditReport({ kind: "audit", audit: data.answer, maps: {}, payers: data.payers ?? [], advice: data.advice, warning: data.warning, failure: data.failure, made: data.made }, store) : answerReport(data, store);
  }
}
