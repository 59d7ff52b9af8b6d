// Who costs how much of one process: the owners of the ledger, and parts of the cost that no row of it has.

import { table, type LedgerAnswer } from "./data";
import type { Term } from "./types";

/** A part of the cost: what one more pays for it, and what all pay once. */
export interface Payer {
  /** The owner, or the name of a term. */
  name: string;
  each: number;
  once: number;
}

/** Return the parts of the cost that no row of a ledger has: the first term is what the rows without a kernel add up to. */
export function unlistedTerms(audit: LedgerAnswer, terms: Term[]): Term[] {
  const rows = table(audit.ledger);
  const [kinds, names] = rows.columns("kind", "name");
  const kernel = new Set(names.filter((_, row) => kinds[row] === "kernel").map((one) => one?.replace(/^\[|\]$/g, "")));
  return terms.slice(1).filter((term) => !term.is_once && !kernel.has(term.name));
}

/** Return the bytes of each row that one more process pays: private ones, or writable ones where only these are known. */
export function rowBytes(audit: LedgerAnswer): (row: number) => number {
  const rows = table(audit.ledger);
  const [bytes, mapped, isWritable] = rows.columns("bytes", "mapped_bytes", "is_writable");
  return audit.totals.private_bytes === null ? (row) => (isWritable[row] ? mapped[row] : 0) : (row) => bytes[row] ?? 0;
}

/**
 * Return who pays for one more and for what all share. They add up to the terms. Where the ledger does not (a forked
 * worker pays less than it holds), the terms themselves are the parts.
 */
export function payersOf(audit: LedgerAnswer | undefined, terms: Term[], more: Payer[]): Payer[] {
  const asTerms = terms.map(({ name, size_bytes, is_once }) => ({ name, each: is_once ? 0 : size_bytes, once: is_once ? size_bytes : 0 }));
  if (!audit) return asTerms;
  const rows = table(audit.ledger);
  const [bytesOf, shared] = [rowBytes(audit), rows.column("shared_bytes")];
  const found = new Map<string, Payer>();
  rows.column("owner").forEach((name, row) => {
    const one = found.get(name) ?? { name, each: 0, once: 0 };
    one.each += bytesOf(row);
    one.once += shared[row] ?? 0;
    found.set(name, one);
  });
  const payers = [...found.values(), ...more];
  const sum = (key: "each" | "once", some: Payer[]) => some.reduce((all, one) => all + one[key], 0);
  if (sum("each", payers) !== sum("each", asTerms)) return asTerms;
  // Without shared bytes by owner, the terms say what all pay once.
  if (sum("once", payers) === sum("once", asTerms)) return payers;
  return [...payers.map((one) => ({ ...one, once: 0 })), ...asTerms.filter((one) => one.once)];
}
