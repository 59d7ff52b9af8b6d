// What the rows of a ledger are grouped by, and which rows are shown then.

import { type LedgerAnswer } from "./data";
import type { GroupOf } from "./rowtree";
import { type Table, table } from "./table";
import type { Finding, MappingCost, Row } from "./types";
import { formatBytes, grouped } from "./units";

/** Return whether only the sizes of address space are known. */
export function isVirtual(audit: LedgerAnswer): boolean {
  return audit.totals.private_bytes === null;
}

export const GROUPINGS = [["owner", "Owner"], ["kind", "Kind"], ["section", "Section"], ["mapping", "Mapping"], ["finding", "Finding"]] as const;
export type Grouping = (typeof GROUPINGS)[number][0];

/** The rows that a picture shows. */
export type Shown = Pick<Table<Row>, "column" | "columns">;

/** Return the rows of a ledger; instead of those of an owner that is opened, its mappings. The kernel's have none. */
export function shownRows(audit: LedgerAnswer, isOpen: (owner: string) => boolean): Shown {
  const ledger = table(audit.ledger);
  const opened = table(audit.mappings).rows().filter((one) => isOpen(one.owner))
    .map((one): Partial<Row> => ({ ...one, name: mappingName(one), pages: Math.ceil((one.bytes ?? 0) / audit.target.page_bytes) }));
  if (!opened.length) return ledger;
  const [owners, kinds] = ledger.columns("owner", "kind");
  const kept = [...kinds.keys()].filter((row) => kinds[row] === "kernel" || !isOpen(owners[row]));
  const column = <K extends keyof Row>(key: K) => {
    const given = ledger.column(key);
    return [...opened.map((one) => (one[key] ?? null) as Row[K]), ...kept.map((row) => given[row])];
  };
  return { column, columns: (...keys) => keys.map(column) as never };
}

// Write what is known of a mapping beside its sizes.
function mappingName({ start_addr, end_addr, permissions, name, owner, has_guard, mapping_count, swapped_bytes }: MappingCost): string {
  return start_addr === null ? `[${grouped(mapping_count)} smaller mapping${mapping_count > 1 ? "s" : ""}]`
    : [`${start_addr.toString(16)}-${end_addr!.toString(16)} ${permissions}`, name !== owner && name, has_guard && "guard beside", swapped_bytes && `${formatBytes(swapped_bytes)} swapped`]
      .filter(Boolean).join(", ");
}

/** Return the group of a row; none for the owners themselves, and for their mappings. */
export function groupOf(audit: LedgerAnswer, rows: Shown, by: Grouping): GroupOf | undefined {
  const [kinds, sections] = rows.columns("kind", "section");
  return by === "kind" ? (row) => kinds[row]
    : by === "section" ? (row) => sections[row] ?? "[no section]"
    : by === "finding" ? findingOf(audit, rows) : undefined;
}

// Return the finding that each row belongs to: the one that saves most of those that name its owner or its symbol.
function findingOf(audit: LedgerAnswer, rows: Shown): GroupOf {
  const [owners, symbols, names, relocated] = rows.columns("owner", "symbol", "name", "relocated_bytes");
  const byOwner = new Map<string, Finding[]>();
  for (const one of table(audit.findings).rows().filter((each) => each.saving_bytes > 0)) {
    for (const owner of new Set([...one.leaves, one.object ?? "", one.subject])) {
      if (owner) byOwner.set(owner, [...(byOwner.get(owner) ?? []), one]);
    }
  }
  const about = (one: Finding, row: number) => one.leaves.includes(owners[row]) || one.subject === symbols[row] || one.subject === names[row]
    || (one.rule === "relocated-tables" && (relocated[row] ?? 0) > 0);
  return (row) => byOwner.get(owners[row])?.filter((one) => about(one, row))
    .reduce<Finding | null>((best, one) => (best && best.saving_bytes >= one.saving_bytes ? best : one), null)?.rule ?? "[no finding]";
}
