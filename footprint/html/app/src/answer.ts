// The report of any answer: its most important lines, and its tables.

import { table, type AnswerData, type Cells } from "./data";
import { el, evidenceMark, plainTable, prose, section } from "./dom";
import { EVIDENCE } from "./evidence";
import { costSection } from "./firstscreen";
import { findingsSection } from "./findings";
import { notesSection } from "./origins";
import { groupCostSection } from "./group";
import { header, placeOf } from "./header";
import { makePage, type Page } from "./page";
import type { Part } from "./reports";
import { TABLES, type TableSpec } from "./sections";
import type { Store } from "./store";
import type { WatchAnswer } from "./types";
import { tableTree } from "./tables";
import { trendSections } from "./trend";
import { kindLegend } from "./legend";
import { treeView } from "./view";
import { watchSection } from "./watch";

/** Return the parts of the report of an answer. */
export function answerReport(data: AnswerData, store: Store): Part[] {
  const { answer } = data;
  const page = makePage(store, answer.projection?.count ?? answer.count ?? 1);
  const shown = TABLES.filter(({ member }) => rowsOf(answer[member]).size);
  return [
    () => header(store, [placeOf({}, data.made)], answer),
    () => leadSection(data),
    () => costOf(data, page),
    () => (answer.trends ? trendSections(answer.releases, answer.trends) : null),
    () => (isWatch(answer) && table(answer.samples).size > 1 ? watchSection(answer, page) : null),
    ...shown.map((spec) => () => tableSection(rowsOf(answer[spec.member]), spec, page)),
    () => findingsSection("findings", "Findings", table(answer.findings), page),
    () => notesSection(table(answer.notes), data.warning),
  ];
}

const isWatch = (answer: AnswerData["answer"] | WatchAnswer): answer is WatchAnswer => Boolean(answer.watch);

const rowsOf = (member: unknown) => table(member as Cells);

function leadSection({ answer, verdicts, parts }: AnswerData): HTMLElement | null {
  // A section has the figures of a cost, and the releases of a trend.
  const told = answer.projection || answer.trends ? [] : table(parts).rows();
  // The section of the cost says it, but for how many fit.
  const said = table(verdicts).rows().filter((one) => one.is_failure || !answer.projection || answer.projection.memory_bytes !== null);
  if (!said.length && !told.length) return null;
  return el("section", { class: "answer", "aria-label": "The answer" },
    ...said.map((one) => el("p", { class: one.is_failure ? "verdict wrong" : "verdict" }, ...prose(one.text))),
    ...told.flatMap(({ heading, sentences, facts }) => [
      facts.length && heading ? el("h3", {}, heading) : null,
      ...sentences.map((text) => el("p", {}, ...prose(text))),
      facts.length ? factTable(facts, heading) : null,
    ]));
}

function factTable(facts: string[][], label: string): HTMLElement {
  const heads = ["what", "how much", "known"].slice(0, facts.some(([, , known]) => known) ? 3 : 2);
  return plainTable(heads, facts.map(([what, size, known]) => [
    el("span", { class: "fact" }, what), size, EVIDENCE.some((one) => one === known) ? evidenceMark(known) : known].slice(0, heads.length)), label);
}

function costOf({ answer }: AnswerData, page: Page): HTMLElement | null {
  const { projection, totals, group, classes } = answer;
  if (projection && totals && "per_process_bytes" in projection) return costSection({ projection, totals }, page);
  if (!group || (projection && !("per_group_bytes" in projection))) return null;
  return groupCostSection({ group, projection: projection ?? null, classes: classes ?? [] }, page);
}

function tableSection(rows: ReturnType<typeof rowsOf>, spec: TableSpec, { store }: Page): HTMLElement {
  const tree = tableTree(rows, spec);
  const hasPicture = Boolean(spec.hasSum && spec.groups);
  const made = section(spec.member, spec.title, treeView(store, spec.member, tree, spec.title, kindLegend(tree), hasPicture));
  made.classList.add("flat");
  return made;
}
