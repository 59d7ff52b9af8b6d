// Every known figure of a process or a group.

import { el, evidenceMark, plainTable } from "./dom";
import type { Evidence, GroupTotals, ProcessTotals } from "./types";
import { formatBytes } from "./units";
import { TITLES } from "./words";

/** Make the table of all figures of what `whose` names. */
export function totalsTable(totals: ProcessTotals | GroupTotals, whose: string): HTMLElement {
  const sizes: Partial<Record<string, unknown>> = { ...totals };
  const evidence: Partial<Record<string, Evidence>> = totals.evidence;
  const rows = Object.entries(TITLES).flatMap(([name, title]) => {
    const size = sizes[name];
    return typeof size === "number" ? [[title, formatBytes(size), evidenceMark(evidence[name])]] : [];
  });
  const parts = Object.entries("of_which" in totals ? totals.of_which : {}).filter(([, size]) => size)
    .map(([name, size]) => [`of which ${TITLES[name]}`, formatBytes(size), null]);
  return el("details", { class: "totals" }, el("summary", {}, "All totals"),
    plainTable([whose, "bytes", "known"], [...rows, ...parts], `All totals of ${whose}`));
}
