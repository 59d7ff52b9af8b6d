// Findings as a table by rule; each opens in place.

import { el, fill } from "./dom";
import { findingRows } from "./findingcard";
import type { Page } from "./page";
import type { Finding } from "./types";
import { grouped } from "./units";

const MOST_SHOWN = 100;
const ORDERS: Record<string, (one: Finding) => string | number> = {
  subject: (one) => one.subject, saving: (one) => -one.saving_bytes, confidence: (one) => CONFIDENCES.indexOf(one.confidence),
};
/** How sure findings are, the surest first. */
export const CONFIDENCES = ["proof", "high", "medium", "low", "blocked"];

/** Make the table; the value `findings.sort` of the state orders it, and `finding` is the one that is open. */
export function findingsTable(rows: Finding[], label: string, { store, count }: Page): HTMLElement {
  const view = el("div", { class: "findings wide", tabindex: 0, role: "region", "aria-label": label });
  let most = MOST_SHOWN;
  const draw = () => {
    const order = ORDERS[store.get("findings.sort") ?? ""] ? store.get("findings.sort")! : "saving";
    const value = ORDERS[order];
    const sorted = [...rows].sort((one, other) => (value(one) < value(other) ? -1 : Number(value(one) > value(other))));
    // Groups stand in the order of their first rows.
    const groups = new Map<string, Finding[]>();
    for (const one of sorted.slice(0, most)) groups.set(one.rule, [...(groups.get(one.rule) ?? []), one]);
    const many = count.value;
    const heading = (name: string, text: string) => el("th", { scope: "col", "aria-sort": name === order ? (name === "saving" ? "descending" : "ascending") : "none" },
      el("button", { onclick: () => store.set("findings.sort", name === "saving" ? null : name) }, text));
    const at = many > 1n && el("th", { scope: "col" }, `in ${grouped(many)}`);
    fill(view, el("table", {}, el("thead", {}, el("tr", {}, heading("subject", "finding"), heading("saving", "saves"), at, heading("confidence", "confidence"))),
      ...[...groups].flatMap(([rule, some]) => [groupRow(rule, some, many), ...some.map((one) => findingRows(one, many, store.get("finding"), (key) => store.set("finding", key)))])),
      rows.length > most && el("button", { onclick: () => {
        most = rows.length;
        draw();
      } }, `Show all ${grouped(rows.length)}`));
  };
  count.watch(draw);
  for (const name of ["findings.sort", "finding"]) store.watch(name, draw);
  return view;
}

function groupRow(rule: string, rows: Finding[], many: bigint): HTMLElement {
  return el("tbody", { class: "rule" }, el("tr", {},
    el("th", { scope: "rowgroup", colspan: many > 1n ? 4 : 3 }, `${rule}, ${rows.length === 1 ? "1 finding" : `${grouped(rows.length)} findings`}`)));
}
