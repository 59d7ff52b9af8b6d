// Findings with what they save, notes, and how the figures were obtained.

import type { Count } from "./count";
import { table, type LedgerAnswer, type Table } from "./data";
import { el, evidenceMark, factList, fill, plainTable, section } from "./dom";
import { meanings } from "./evidence";
import { isVirtual } from "./ledger";
import { printable } from "./names";
import type { Page } from "./page";
import { whyNone } from "./savings";
import { atCount, paidByEach } from "./terms";
import type { Evidence, FindingRow, Note } from "./types";
import { formatBytes, grouped } from "./units";

const MOST_SHOWN = 100;
const FEW = 6;
const SAVES_NOTHING = "saves nothing by itself";

/** Make the section of the findings of an audit. */
export function searchedFindings(audit: LedgerAnswer, page: Page): HTMLElement | null {
  return findingsSection("findings", "Findings", table(audit.findings), page, whyNone(audit));
}

/** Make a section of findings; `ifNone` is shown where there are none, "" for no section. Many findings that save nothing are folded. */
export function findingsSection(id: string, title: string, findings: Table<FindingRow>, { count }: Page, ifNone: string): HTMLElement | null {
  const rows = findings.rows();
  if (!rows.length && !ifNone) return null;
  const [saving, others] = [rows.filter((one) => one.saving_bytes), rows.filter((one) => !one.saving_bytes)];
  const also = saving.length ? " more" : "";
  return section(id, title,
    saving.length ? cards(saving, count) : null,
    others.length
      ? el("details", { open: others.length <= FEW },
        el("summary", {}, others.length === 1 ? `1${also} ${SAVES_NOTHING}` : `${grouped(others.length)}${also} save nothing by themselves`),
        cards(others, count))
      : null,
    rows.length ? null : el("p", {}, ifNone));
}

function cards(rows: FindingRow[], count: Count): HTMLElement {
  const list = el("ol", { class: "findings" });
  let most = MOST_SHOWN;
  const draw = (many: bigint) => {
    fill(list, ...rows.slice(0, most).map((one) => card(one, many, atCount(paidByEach(one.saving_bytes), many))),
      rows.length > most && el("li", {}, el("button", { type: "button", onclick: () => {
        most = rows.length;
        draw(count.value);
      } }, `Show all ${grouped(rows.length)}`)));
  };
  count.watch(draw);
  return list;
}

function card(one: FindingRow, count: bigint, total: bigint | null): HTMLElement {
  const isPerThread = one.saving_per === "thread" && one.member_count === null;
  const unit = one.member_count !== null ? "group" : isPerThread ? "thread" : "process";
  const saves = one.confidence === "blocked" ? "would save" : "saves";
  const item = (name: string, text: string | HTMLElement) => [el("dt", {}, name), el("dd", {}, text)];
  const code = (text: string) => el("code", {}, printable(text));
  return el("li", { class: "finding" },
    el("h3", {}, `${one.rule}: `, el("span", { class: "subject" }, printable(one.subject))),
    el("p", {},
      el("strong", {}, one.saving_bytes ? `${saves} ${formatBytes(one.saving_bytes)} a ${unit}` : SAVES_NOTHING),
      one.saving_bytes && total !== null && count > 1n
        ? el("span", { class: "at-count", "data-bytes": total.toString() },
          `, ${formatBytes(total)} in ${grouped(count)}${isPerThread ? " processes of one thread" : ""}`)
        : null,
      " ", el("span", { class: `evidence confidence-${one.confidence}` }, one.confidence)),
    el("p", {}, printable(one.message), "."),
    el("dl", {},
      ...(one.location ? item("Declared", code(`${one.location.file}${one.location.line === null ? "" : `:${one.location.line}`}`)) : []),
      ...(one.member_count === null ? [] : item("Processes", grouped(one.member_count))),
      ...(one.object ? item("Object", code(one.object)) : []),
      ...(one.private_bytes === null ? [] : item("Private now", formatBytes(one.private_bytes))),
      ...(one.reasons.length ? item(`Why ${one.confidence}`, printable(one.reasons.join("; "))) : []),
      ...item("Remedy", printable(one.remedy)),
      ...(one.leaves.length > 1 ? item("Leaves with it", printable(one.leaves.join(", "))) : [])));
}

/** Make the list of notes. */
export function notesSection(notes: Table<Note>, warning: string): HTMLElement {
  const rows = notes.rows();
  return section("notes", "Notes",
    warning ? el("p", { class: "warning" }, warning) : null,
    rows.length || warning
      ? el("ul", {}, ...rows.map((note) => el("li", {}, el("strong", {}, note.slug), ` ${printable(note.subject)}: ${printable(note.detail)}`)))
      : el("p", {}, "Nothing was odd."));
}

/** Make the section on what was read, and how sure the figures are. */
export function originsSection(audit: LedgerAnswer, title = "How these figures were obtained", id = "origins"): HTMLElement {
  const { target, host, tool } = audit;
  const source = target.source === "prediction" ? "its files; nothing was run" : `${target.source}${target.is_live ? ", live" : ""}`;
  const debugFileCount = table(audit.debug_files).size;
  return section(id, title,
    factList([
      ["Target", printable(target.name)],
      ["Process", target.pid === null ? "" : String(target.pid)],
      ["Command", printable(target.command)],
      ["Read from", source],
      ["Mappings", grouped(target.mapping_count)],
      ["Page", formatBytes(target.page_bytes)],
      ["Host", Object.values(host).map((one) => printable(String(one))).join(" ")],
      ["Written by", `${tool.name} ${tool.version}`],
    ]),
    evidenceTable(audit, `${title}: evidence`),
    debugFileCount ? el("p", {}, `The names of ${debugFileCount} stripped files are from their debug files.`) : null);
}

function evidenceTable(audit: LedgerAnswer, label: string): HTMLElement {
  const ledger = table(audit.ledger);
  // Where only address space is known, the sizes of writable mappings are added up.
  const virtual = isVirtual(audit);
  const isWritable = ledger.column("is_writable");
  const bytes = virtual ? ledger.column("mapped_bytes").map((size, row) => (isWritable[row] ? size : 0)) : ledger.column("bytes");
  const sums = new Map<Evidence, [rows: number, bytes: number]>();
  ledger.column("evidence").forEach((one, row) => {
    const [rows, sum] = sums.get(one) ?? [0, 0];
    sums.set(one, [rows + 1, sum + (bytes[row] ?? 0)]);
  });
  return plainTable(["known", "what it means", "rows", virtual ? "writable in them" : "bytes in them"],
    meanings((word) => sums.has(word)).map(([word, meaning]) => {
      const [rows, sum] = sums.get(word)!;
      return [evidenceMark(word), meaning, grouped(rows), formatBytes(sum)];
    }), label);
}
