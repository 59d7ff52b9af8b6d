// The best savings, on the first screen.

import { type LedgerAnswer } from "./data";
import { el, fill, prose } from "./dom";
import { keyOf } from "./findingcard";
import { CONFIDENCES } from "./findingstable";
import { printable, shortened } from "./names";
import type { Page } from "./page";
import { table } from "./table";
import { atCount, type Paid, paidByEach } from "./terms";
import type { FindingRow } from "./types";
import { formatBytes, grouped } from "./units";

const MOST_SHOWN = 3;
/** Savings below this share of what one more costs are left out. */
const LEAST_SHARE = 0.001;

/** Say what was looked for and not found; nothing where there are findings. */
export function whyNone(audit: LedgerAnswer): string {
  return table(audit.searched_rules).size ? "Nothing was found that it could do without."
    : "run" in audit ? "What it could do without was not looked for, and the process that ran has ended: `footprint audit` of its program looks."
    : audit.target.is_live ? "What it could do without was not looked for: `footprint audit --findings` looks."
    : "What it could do without was not looked for: that needs the live process, or the program.";
}

/** Findings with the same remedy, the largest saving first: as sure together as the least sure of them. */
interface Saving {
  rows: FindingRow[];
  terms: Paid[];
  bytes: bigint;
  confidence: FindingRow["confidence"];
}

// Return what can be done, the largest saving first. Findings of one rule about different objects do not overlap.
function best(rows: FindingRow[]): Saving[] {
  const found = new Map<string, FindingRow[]>();
  for (const one of rows.filter(({ saving_bytes, confidence }) => saving_bytes > 0 && confidence !== "blocked").sort((one, other) => other.saving_bytes - one.saving_bytes)) {
    const key = `${one.rule}\n${one.remedy}`;
    found.set(key, [...(found.get(key) ?? []), one]);
  }
  const sureness = ({ confidence }: FindingRow) => CONFIDENCES.indexOf(confidence);
  return [...found.values()].map((some) => {
    const terms = paidByEach(...some.map((one) => one.saving_bytes));
    return { rows: some, terms, bytes: atCount(terms, 1n)!, confidence: some.reduce((least, one) => (sureness(one) > sureness(least) ? one : least)).confidence };
  }).sort((one, other) => Number(other.bytes - one.bytes));
}

// The names of the subjects, and how many more there are.
function subjects(rows: FindingRow[]): string {
  const names = rows.slice(0, 2).map(({ subject }) => printable(shortened(subject.slice(subject.lastIndexOf("/") + 1), 40)));
  return names.join(", ") + (rows.length > names.length ? ` and ${grouped(rows.length - names.length)} more` : "");
}

/** List the best savings of what one more costs, with their remedies; a click goes to the finding. */
export function savings(audit: LedgerAnswer, costBytes: bigint, { store, count }: Page): HTMLElement {
  const all = best(table(audit.findings).rows());
  if (!all.length) return el("p", {}, ...prose(table(audit.findings).size ? "No finding saves memory by itself." : whyNone(audit)));
  const found = all.filter(({ bytes }) => Number(bytes) >= LEAST_SHARE * Number(costBytes));
  const leftOut = all.slice(found.length).reduce((sum, { rows }) => sum + rows.length, 0);
  const list = el("ol", { class: "savings" });
  count.watch((many) => fill(list, ...found.slice(0, MOST_SHOWN).map(({ rows, terms, bytes, confidence }) => el("li", {},
    el("strong", {}, formatBytes(bytes)), many > 1n ? ` each, ${formatBytes(atCount(terms, many)!)} in ${grouped(many)}: ` : " each: ",
    el("span", { class: "subject" }, subjects(rows)), ` (${rows[0].rule}) `,
    el("span", { class: `evidence confidence-${confidence}` }, confidence === "proof" ? confidence : `${confidence} confidence`),
    el("span", { class: "remedy" }, ...prose(rows[0].remedy))))));
  return el("div", {}, found.length ? list : el("p", {}, "No finding saves 0.1% of the cost or more."), el("a", { href: "#at=findings", onclick: (event: MouseEvent) => {
    event.preventDefault();
    store.set("finding", keyOf(all[0].rows[0]));
    // A second click goes there, too.
    store.set("at", null);
    store.set("at", "findings");
  } }, table(audit.findings).size === 1 ? "The finding" : `All ${grouped(table(audit.findings).size)} findings`),
    leftOut > 0 && ".", leftOut > 0 && el("span", { class: "small" }, ` ${leftOut === 1 ? "One saves" : `${grouped(leftOut)} save`} less than 0.1% of the cost.`));
}
