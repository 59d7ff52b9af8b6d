// The report of any answer: its most important lines, and its tables.

import type { AnswerData, Cells } from "./answerdata";
import { leadSection } from "./answerlead";
import { changeSection } from "./change";
import { countControl } from "./count";
import { answerSection, el, fill, section } from "./dom";
import { findingsSection } from "./findings";
import { costSection } from "./firstscreen";
import { groupCostSection } from "./group";
import { header, placeOf } from "./header";
import { kindLegend } from "./legend";
import { notesSection } from "./origins";
import { makePage, type Page, type Part } from "./page";
import { TABLES, type TableSpec } from "./sections";
import type { Store } from "./store";
import { table } from "./table";
import { tableTree } from "./tables";
import { atCount, paidByEach } from "./terms";
import { trendSections } from "./trend";
import type { WatchAnswer } from "./types";
import { formatBytes, grouped } from "./units";
import { treeView } from "./view";
import { watchSection } from "./watch";

/** Return the parts of the report of an answer. */
export function answerReport(data: AnswerData, store: Store): Part[] {
  const { answer } = data;
  const page = makePage(store, answer.projection?.count ?? answer.saving?.count ?? answer.count ?? 1);
  // The rows are below the last heading.
  const question = table(data.parts).rows().at(-1)?.heading;
  const shown = TABLES.filter(({ member }) => rowsOf(answer[member]).size).map((spec) => ({ ...spec, columns: data.columns?.[spec.member] ?? spec.columns }));
  return [
    () => header(store, [answer.target?.command ?? "", placeOf({}, data.made)], answer),
    () => leadSection(data),
    () => costOf(data, page),
    () => savingOf(data, page),
    () => (answer.trends ? trendSections(answer.releases, answer.trends) : null),
    () => (isWatch(answer) && table(answer.samples).size > 1 ? watchSection(answer, page) : null),
    ...shown.map((spec) => () => tableSection(rowsOf(answer[spec.member]), spec.member === "rows" ? { ...spec, title: question || spec.title } : spec, page)),
    () => findingsSection("findings", "Findings", table(answer.findings), page),
    () => notesSection(table(answer.notes), data.warning),
  ];
}

const isWatch = (answer: AnswerData["answer"] | WatchAnswer): answer is WatchAnswer => Boolean(answer.watch);

const rowsOf = (member: unknown) => table(member as Cells);

function costOf({ answer }: AnswerData, page: Page): HTMLElement | null {
  const { projection, totals, group, classes } = answer;
  if (projection && totals && "per_process_bytes" in projection) return costSection({ projection, totals }, page);
  return !group || (projection && !("per_group_bytes" in projection)) ? null : groupCostSection({ group, projection: projection ?? null, classes: classes ?? [] }, page);
}

// What N processes save without some libraries, or cost in another build.
function savingOf({ answer, verdicts }: AnswerData, page: Page): HTMLElement | null {
  const { saving, whatif } = answer;
  if (whatif && answer.figures) {
    const changes = { cost: answer.cost, figures: answer.figures, owner_changes: answer.changes };
    return changeSection(changes, page, false, !table(verdicts).rows().some((one) => one.is_failure));
  }
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
  const made = section(spec.member, spec.title, treeView(store, spec.member, tree, spec.title, kindLegend(tree), Boolean(spec.hasSum && spec.groups)));
  made.classList.add("flat");
  return made;
}
