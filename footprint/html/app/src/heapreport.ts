// The report of heap profiles: one of them at a time.

import type { HeapData } from "./data";
import { el, fill, prose } from "./dom";
import { findingsSection } from "./findings";
import { header, placeOf } from "./header";
import { profileSections } from "./heap";
import { printable } from "./names";
import { notesSection } from "./origins";
import { makePage, type Part } from "./page";
import { profileChangeSection, profilesTable } from "./profiles";
import type { Store } from "./store";
import { table } from "./table";

/** Return the parts of the report of heap profiles. */
export function heapReport(data: HeapData, store: Store): Part[] {
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
    () => el("section", { class: "answer", "aria-label": "The answer" }, el("p", { class: "verdict" }, ...prose(data.verdict))),
    () => (profiles.size > 1 ? profilesTable(data) : null),
    () => (profiles.size > 1 ? profileChangeSection(data, page) : null),
    () => (files.length > 1 ? el("p", { class: "tools" }, el("label", { for: "file" }, "Profile"), select) : null),
    () => view,
    () => findingsSection("findings", "Findings", table(heap.findings), page),
    () => notesSection(table(heap.notes), data.warning),
  ];
}
