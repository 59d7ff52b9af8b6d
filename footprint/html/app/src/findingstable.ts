// Findings as a table by rule; each opens in place.

import { el, fill, prose, type Child } from "./dom";
import { printable } from "./names";
import type { Page } from "./page";
import { atCount, paidByEach } from "./terms";
import type { FindingRow } from "./types";
import { formatBytes, grouped } from "./units";

const MOST_SHOWN = 100;
const ORDERS: Record<string, (one: FindingRow) => string | number> = {
  subject: (one) => one.subject, saving: (one) => -one.saving_bytes, confidence: (one) => CONFIDENCES.indexOf(one.confidence),
};
const CONFIDENCES = ["proof", "high", "medium", "low", "blocked"];

/** Make the table; the value `findings.sort` of the state orders it, and `finding` is the one that is open. */
export function findingsTable(rows: FindingRow[], label: string, { store, count }: Page): HTMLElement {
  const view = el("div", { class: "findings wide", tabindex: 0, role: "region", "aria-label": label });
  let most = MOST_SHOWN;
  const draw = () => {
    const order = ORDERS[store.get("findings.sort") ?? ""] ? store.get("findings.sort")! : "saving";
    const value = ORDERS[order];
    const sorted = [...rows].sort((one, other) => (value(one) < value(other) ? -1 : Number(value(one) > value(other))));
    // Groups stand in the order of their first rows.
    const groups = new Map<string, FindingRow[]>();
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

/** Return the name of a finding in the address. */
export function keyOf(one: FindingRow): string {
  return `${one.rule}/${one.kind}/${one.subject}/${one.object ?? ""}`;
}

function groupRow(rule: string, rows: FindingRow[], many: bigint): HTMLElement {
  return el("tbody", { class: "rule" }, el("tr", {},
    el("th", { scope: "rowgroup", colspan: many > 1n ? 4 : 3 }, `${rule}, ${rows.length === 1 ? "1 finding" : `${grouped(rows.length)} findings`}`)));
}

function findingRows(one: FindingRow, many: bigint, open: string | null, choose: (key: string | null) => void): HTMLElement {
  const isPerThread = one.saving_per === "thread" && one.member_count === null;
  const unit = one.member_count !== null ? "group" : isPerThread ? "thread" : "process";
  const total = one.saving_bytes ? atCount(paidByEach(one.saving_bytes), many) : null;
  const key = keyOf(one);
  const isOpen = key === open;
  return el("tbody", { class: "finding" },
    el("tr", {},
      el("td", {}, el("button", { "aria-expanded": String(isOpen), onclick: () => choose(isOpen ? null : key) },
        el("span", { class: "subject" }, printable(one.subject)))),
      el("td", {}, one.saving_bytes ? `${formatBytes(one.saving_bytes)} a ${unit}` : "nothing by itself"),
      many > 1n && el("td", {}, total !== null && el("span", { class: "at-count", "data-bytes": total.toString() },
        `${formatBytes(total)}${isPerThread ? ", with one thread each" : ""}`)),
      el("td", {}, el("span", { class: `evidence confidence-${one.confidence}` }, one.confidence))),
    el("tr", { hidden: !isOpen }, el("td", { colspan: many > 1n ? 4 : 3 }, ...card(one))));
}

function card(one: FindingRow): Child[] {
  const item = (name: string, text: string | HTMLElement) => [el("dt", {}, name), el("dd", {}, text)];
  const code = (text: string) => el("code", {}, printable(text));
  return [
    el("p", {}, ...prose(one.message), "."),
    el("dl", {},
      ...(one.location ? item("Declared", code(`${one.location.file}${one.location.line === null ? "" : `:${one.location.line}`}`)) : []),
      ...(one.member_count === null ? [] : item("Processes", grouped(one.member_count))),
      ...(one.object ? item("Object", code(one.object)) : []),
      ...(one.private_bytes === null ? [] : item("Private now", formatBytes(one.private_bytes))),
      ...(one.reasons.length ? item(`Why ${one.confidence}`, printable(one.reasons.join("; "))) : []),
      ...item("Remedy", el("span", {}, ...prose(one.remedy))),
      ...(one.leaves.length > 1 ? item("Leaves with it", printable(one.leaves.join(", "))) : [])),
  ];
}
