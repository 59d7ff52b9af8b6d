// Notes, and how the figures were obtained.

import { type LedgerAnswer } from "./data";
import { el, evidenceMark, factList, plainTable, prose, section } from "./dom";
import { meanings } from "./evidence";
import { isVirtual } from "./grouping";
import { printable } from "./names";
import { type Table, table } from "./table";
import type { Evidence, Note } from "./types";
import { formatBytes, grouped } from "./units";

/** Make the list of notes; null where there are none. */
export function notesSection(notes: Table<Note>, warning: string): HTMLElement | null {
  const rows = notes.rows();
  if (!rows.length && !warning) return null;
  return section("notes", "Notes",
    warning ? el("p", { class: "warning" }, warning) : null,
    el("ul", {}, ...rows.map((note) => el("li", {}, el("strong", {}, note.slug), ` ${note.subject}: `, ...prose(note.detail)))));
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
