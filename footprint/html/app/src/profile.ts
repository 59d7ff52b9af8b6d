// One profile of a heap.

import { type HeapData, type Moment } from "./data";
import { table } from "./table";
import type { Snapshot } from "./chart";
import type { FunctionTotalsRow, ProfileRow } from "./types";

/** One profile with its snapshots, the moments that have a call tree, and the snapshots that the user named. */
export interface Profile {
  row: ProfileRow;
  snapshots: Snapshot[];
  moments: Moment[];
  named: (number | null)[];
  totals: FunctionTotalsRow[];
}

export function profileOf(data: HeapData, file: string): Profile {
  const row = table(data.heap.profiles).rows().find((one) => one.file === file)!;
  const snapshots = table(data.heap.snapshots).rows()
    .map((one, place) => ({ ...one, used_bytes: data.used_bytes[place], what: `Snapshot ${one.number}` })).filter((one) => one.file === file);
  const totals = table(data.heap.totals).rows().filter((one) => one.file === file);
  return { row, snapshots, moments: Object.values(data.moments).filter((one) => one.file === file), named: data.named[file], totals };
}
