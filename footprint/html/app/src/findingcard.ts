// One finding as rows of a table: what it saves, and below it what to do.

import { type Child, el, prose } from "./dom";
import { printable } from "./names";
import { atCount, paidByEach } from "./terms";
import type { Finding } from "./types";
import { formatBytes, grouped } from "./units";

/** Return the name of a finding in the address. */
export function keyOf(one: Finding): string {
  return `${one.rule}/${one.kind}/${one.subject}/${one.object ?? ""}`;
}

export function findingRows(one: Finding, many: bigint, open: string | null, choose: (key: string | null) => void): HTMLElement {
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

function card(one: Finding): Child[] {
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
