// The report of two audits: what changed, and each of them.

import { pageMapSection } from "./cells";
import { changeSection } from "./change";
import { choice } from "./choice";
import type { DiffData, LedgerAnswer } from "./data";
import { changeSections } from "./differences";
import { el, fill } from "./dom";
import { findingsSection } from "./findings";
import { asAudit } from "./group";
import { header, placeOf } from "./header";
import { ledgerSection } from "./ledger";
import { librariesSection } from "./objects";
import { notesSection, originsSection } from "./origins";
import { makePage, type Page, type Part } from "./page";
import { heapAccountSection } from "./profiles";
import type { Store } from "./store";
import { table } from "./table";

// One of the two audits that are compared.
function sideSections(audit: LedgerAnswer, details: DiffData["maps"], page: Page): (Node | null)[] {
  return [
    ledgerSection(audit, page),
    pageMapSection(page.store, { maps: audit.page_maps, details }, audit.target.page_bytes),
    audit.heap_account && heapAccountSection(audit.heap_account, page), librariesSection(audit, page), findingsSection("findings", "Findings", table(audit.findings), page),
  ];
}

/** Return the parts of the report of two audits. */
export function diffReport(data: DiffData, store: Store): Part[] {
  const { diff } = data;
  const [old, audit] = [asAudit(data.old), asAudit(data.audit)];
  const page = makePage(store, diff.count);
  const view = el("div");
  const side = choice(store, "side", "Show", [["change", "Change"], ["before", "Before"], ["after", "After"]] as const);
  store.remake(["side"], () => fill(view, ...(side.value === "change" ? changeSections(data, page)
    : side.value === "before" ? sideSections(old, data.old_maps, page) : sideSections(audit, data.maps, page))));
  return [
    () => header(store, [old.target.command, audit.target.command, placeOf(audit.host, data.made)], diff),
    () => changeSection(diff, page), () => el("div", { class: "sides" }, side.element), () => view,
    () => notesSection(table(diff.notes), data.warning),
    () => originsSection(old, "How the figures before were obtained", "origins-before"),
    () => originsSection(audit, "How those after were obtained"),
  ];
}
