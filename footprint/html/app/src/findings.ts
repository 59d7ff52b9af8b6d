// The sections on findings, with what they save together.

import { type LedgerAnswer, table, type Table } from "./data";
import { el, fill, section } from "./dom";
import { findingsTable } from "./findingstable";
import { privateByOwner } from "./grouping";
import type { Page } from "./page";
import { atCount, paidByEach } from "./terms";
import type { FindingRow } from "./types";
import { formatBytes, grouped } from "./units";

const FEW = 6;

/** Make the section of the findings of an audit. */
export function searchedFindings(audit: LedgerAnswer, page: Page): HTMLElement | null {
  return findingsSection("findings", "Findings", table(audit.findings), page, privateByOwner(audit));
}

/** Make a section of findings; null where there are none. Many findings that save nothing are folded. */
export function findingsSection(
  id: string, title: string, findings: Table<FindingRow>, page: Page, privateBytes?: Map<string, number>,
): HTMLElement | null {
  const rows = findings.rows();
  if (!rows.length) return null;
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
