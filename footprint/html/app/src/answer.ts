// The report of any answer: its most important lines, and its tables.

import { table, type AnswerData, type Cells } from "./data";
import { changeSection } from "./change";
import { countControl } from "./count";
import { answerSection, el, evidenceMark, fill, plainTable, prose, section } from "./dom";
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
import { atCount, paidByEach } from "./terms";
import type { WatchAnswer } from "./types";
import { formatBytes, grouped } from "./units";
import { tableTree } from "./tables";
import { trendSections } from "./trend";
import { kindLegend } from "./legend";
import { treeView } from "./view";
import { watchSection } from "./watch";

/** Return the parts of the report of an answer. */
export function answerReport(data: AnswerData, store: Store): Part[] {
  const { answer } = data;
  const page = makePage(store, answer.projection?.count ?? answer.saving?.count ?? answer.count ?? 1);
  const shown = TABLES.filter(({ member }) => rowsOf(answer[member]).size);
  return [
    () => header(store, [answer.target?.command ?? "", placeOf({}, data.made)], answer),
    () => leadSection(data),
    () => costOf(data, page),
    () => savingOf(data, page),
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
  const told = answer.projection || answer.trends ? [] : table(parts).rows().filter(({ heading, facts }) => !heading || facts.length || !table(answer.findings).size);
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

const isEvidence = (text: string) => EVIDENCE.some((one) => one === text);

function factTable(facts: string[][], label: string): HTMLElement {
  const heads = ["what", "how much", facts.some(([, , known]) => isEvidence(known)) ? "known" : "detail"].slice(0, facts.some(([, , known]) => known) ? 3 : 2);
  return plainTable(heads, facts.map(([what, size, known]) => [
    el("span", { class: "fact" }, what), size, isEvidence(known) ? evidenceMark(known) : known].slice(0, heads.length)), label);
}

function costOf({ answer }: AnswerData, page: Page): HTMLElement | null {
  const { projection, totals, group, classes } = answer;
  if (projection && totals && "per_process_bytes" in projection) return costSection({ projection, totals }, page);
  if (!group || (projection && !("per_group_bytes" in projection))) return null;
  return groupCostSection({ group, projection: projection ?? null, classes: classes ?? [] }, page);
}

// What N processes save without some libraries, or cost in another build.
function savingOf({ answer }: AnswerData, page: Page): HTMLElement | null {
  const { saving, whatif } = answer;
  if (whatif && answer.figures) return changeSection({ figures: answer.figures, owner_changes: answer.changes }, page);
  const each = saving?.per_process_bytes ?? saving?.private_bytes;
  if (each === null || each === undefined) return null;
  const line = el("p", { class: "verdict", role: "status", id: "verdict" });
  page.count.watch((many) => {
    const all = atCount(paidByEach(each), many)!;
    const [verb, size] = all < 0n ? ["cost", `${formatBytes(-all)} more`] : ["save", formatBytes(all)];
    fill(line, `${grouped(many)} ${many === 1n ? `process ${verb}s` : `processes ${verb}`} `, el("strong", { id: "total", "data-bytes": all.toString() }, size));
  });
  return answerSection("What so many save", line, countControl(page.count, "processes"));
}

function tableSection(rows: ReturnType<typeof rowsOf>, spec: TableSpec, { store }: Page): HTMLElement {
  const tree = tableTree(rows, spec);
  const hasPicture = Boolean(spec.hasSum && spec.groups);
  const made = section(spec.member, spec.title, treeView(store, spec.member, tree, spec.title, kindLegend(tree), hasPicture));
  made.classList.add("flat");
  return made;
}
