// Who pays for what N cost: the owners of a ledger, and parts of the cost that no row of it has.

import type { Term } from "./types";

/** A part of what N cost. The report is given them: they add up to the terms. */
export interface Payer {
  /** The owner, or the name of a term. */
  name: string;
  /** What each of the N pays for it. */
  each_bytes: number;
  /** What all of them pay for it once. */
  once_bytes: number;
  is_owner: boolean;
}

/** Return terms as the parts of a cost, for an answer without a ledger. */
export function termPayers(terms: Term[]): Payer[] {
  return terms.map(({ name, size_bytes, is_once }) => ({ name, each_bytes: is_once ? 0 : size_bytes, once_bytes: is_once ? size_bytes : 0, is_owner: false }));
}

/** Return the parts of the cost that no row of the ledger has; none where the parts are no owners. */
export function unlisted(payers: Payer[]): { name: string; bytes: number }[] {
  return payers.some((one) => one.is_owner)
    ? payers.filter((one) => !one.is_owner && one.each_bytes).map((one) => ({ name: one.name, bytes: one.each_bytes })) : [];
}
