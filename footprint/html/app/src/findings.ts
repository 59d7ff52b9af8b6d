// The sections on findings, with what they save together.

import { el, fill, section } from "./dom";
import { findingsTable } from "./findingstable";
import type { Page } from "./page";
import type { Table } from "./table";
import { atCount, paidByEach } from "./terms";
import type { Finding } from "./types";
import { formatBytes, grouped } from "./units";

const FEW = 6;

/** Make a section of findings; null where there are none. Many findings that save nothing are folded. */
export function findingsSection(
  id: string, title: string, findings: Table<Finding>, page: Page, hasSum = true,
): HTMLElement | null {
  const rows = findings.rows();
  if (!rows.length) return null;
  const [saving, others] = [rows.filter((one) => one.saving_bytes), rows.filter((one) => !one.saving_bytes)];
  const also = saving.length ? " more" : "";
  return section(id, title,
    hasSum && saving.length > 1 ? togetherLine(saving, page) : null,
    saving.length ? findingsTable(saving, `${title}: what they save`, page) : null,
    others.length
      ? el("details", { open: others.length <= FEW },
        el("summary", {}, others.length === 1 ? `1${also} saves nothing` : `${grouped(others.length)}${also} save nothing`),
        findingsTable(others, `${title} that save nothing`, page))
      : null);
}

function togetherLine(rows: Finding[], { count }: Page): HTMLElement {
  const line = el("p", { id: "together" });
  const terms = paidByEach(...rows.map((one) => one.added_bytes));
  count.watch((many) => fill(line, "All of them together save at most ", el("strong", {}, formatBytes(atCount(terms, 1n)!)),
    many > 1n ? `, ${formatBytes(atCount(terms, many)!)} in ${grouped(many)}` : "", ": what several of them would free counts once."));
  return line;
}
