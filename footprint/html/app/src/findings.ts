// Findings with what they save, notes, and how the figures were obtained.

import { table, type LedgerAnswer, type Table } from "./data";
import { el, evidenceMark, factList, fill, plainTable, section } from "./dom";
import { meanings } from "./evidence";
import { findingsTable } from "./findingstable";
import { isVirtual, privateByOwner } from "./ledger";
import { printable } from "./names";
import type { Page } from "./page";
import { whyNone } from "./savings";
import { atCount, paidByEach } from "./terms";
import type { Evidence, FindingRow, Note } from "./types";
import { formatBytes, grouped } from "./units";

const FEW = 6;

/** Make the section of the findings of an audit. */
export function searchedFindings(audit: LedgerAnswer, page: Page): HTMLElement | null {
  return findingsSection("findings", "Findings", table(audit.findings), page, whyNone(audit), privateByOwner(audit));
}

/** Make a section of findings; `ifNone` is shown where there are none, "" for no section. Many findings that save nothing are folded. */
export function findingsSection(
  id: string, title: string, findings: Table<FindingRow>, page: Page, ifNone: string, privateBytes?: Map<string, number>,
): HTMLElement | null {
  const rows = findings.rows();
  if (!rows.length) return ifNone ? section(id, title, el("p", {}, ifNone)) : null;
  const [saving, others] = [rows.filter((one) => one.saving_bytes), rows.filter((one) => !one.saving_bytes)];
  const also = saving.length ? " more" : "";
  return section(id, title,
    privateBytes && saving.length > 1 ? togetherLine(saving, privateBytes, page) : null,
    saving.length ? findingsTable(saving, `${title}: what they save`, page) : null,
    others.length
      ? el("details", { open: others.length <= FEW },
        el("summary", {}, others.length === 1 ? `1${also} saves nothing by itself` : `${grouped(others.length)}${also} save nothing by themselves`),
        findingsTable(others, `${title} that save nothing`, page))
      : null);
}

function togetherLine(rows: FindingRow[], privateBytes: Map<string, number>, { count }: Page): HTMLElement {
  const line = el("p", { id: "together" });
  const size = together(rows, privateBytes);
  count.watch((many) => fill(line, "All of them together save at most ", el("strong", {}, formatBytes(size)),
    many > 1n ? `, ${formatBytes(atCount(paidByEach(size), many)!)} in ${grouped(many)}` : "", ": what several of them would free counts once."));
  return line;
}

/**
 * Return the most that findings save together. What leaves with one library leaves once, and an object saves no more
 * than it holds.
 */
export function together(rows: FindingRow[], privateBytes: Map<string, number>): number {
  const gone = new Set<string>();
  const left = new Map(privateBytes);
  let sum = 0;
  for (const one of [...rows].sort((a, b) => b.leaves.length - a.leaves.length || b.saving_bytes - a.saving_bytes)) {
    const owner = one.object ?? (privateBytes.has(one.subject) ? one.subject : null);
    if (one.confidence === "blocked" || one.leaves.some((path) => gone.has(path)) || (owner !== null && gone.has(owner))) continue;
    for (const path of one.leaves) gone.add(path);
    const room = owner !== null && !one.leaves.length ? left.get(owner) ?? one.saving_bytes : one.saving_bytes;
    const saved = Math.min(one.saving_bytes, room);
    if (owner !== null && left.has(owner)) left.set(owner, left.get(owner)! - saved);
    sum += saved;
  }
  return sum;
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
