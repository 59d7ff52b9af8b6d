// The functions that hold most, at each moment with a call tree; and who calls one function, and whom it calls.

import type { Moment } from "./data";
import { Merged, nameOf } from "./merged";
import { table } from "./table";
import { Tree } from "./tree";
import type { CallRow } from "./types";

/** The calls of a moment as lists: the parent of each node, its function and its bytes; node 0 is the whole. */
interface Calls {
  rows: (CallRow | null)[];
  parents: number[];
}

function callsOf(moment: Moment): Calls {
  const rows: (CallRow | null)[] = [null];
  const parents = [-1];
  const places = new Map<number, number>([[0, 0]]);
  for (const row of table(moment.calls).rows()) {
    places.set(row.node, rows.length);
    parents.push(places.get(row.parent) ?? 0);
    rows.push(row);
  }
  return { rows, parents };
}

/** Return the functions of a moment by what was asked for in them and in what they call, the largest first. */
export function functionsOf(moment: Moment): { key: string; name: string; bytes: number }[] {
  const { rows, parents } = callsOf(moment);
  const found = new Map<string, { key: string; name: string; bytes: number }>();
  rows.forEach((row, node) => {
    if (!row || isWithin(rows, parents, node)) return;
    const key = nameOf(row);
    const one = found.get(key) ?? { key, name: row.name, bytes: 0 };
    one.bytes += row.bytes ?? 0;
    found.set(key, one);
  });
  return [...found.values()].sort((one, other) => other.bytes - one.bytes);
}

// Whether a call lies in another call of the same function: the outer one counts its bytes.
function isWithin(rows: Calls["rows"], parents: number[], node: number): boolean {
  const key = nameOf(rows[node]!);
  for (let at = parents[node]; at > 0; at = parents[at]) if (nameOf(rows[at]!) === key) return true;
  return false;
}

/** Build the trees of the callers of a function and of what it calls; the root of both is the function itself. */
export function around(moment: Moment, key: string): { callers: Tree; callees: Tree } {
  const calls = callsOf(moment);
  const { rows, parents } = calls;
  const children = rows.map((): number[] => []);
  parents.forEach((parent, node) => { if (parent >= 0) children[parent].push(node); });
  const chosen = rows.flatMap((row, node) => (row && nameOf(row) === key && !isWithin(rows, parents, node) ? [node] : []));
  const [callers, callees] = [new Merged(), new Merged()];
  for (const node of chosen) {
    const bytes = rows[node]!.bytes ?? 0;
    for (const merged of [callers, callees]) merged.add(0, rows[node]!, bytes);
    let place = 0;
    for (let at = parents[node]; at > 0; at = parents[at]) place = callers.below(place, rows[at]!, bytes);
    const waiting: [node: number, place: number][] = [[node, 0]];
    while (waiting.length) {
      const [at, parent] = waiting.pop()!;
      for (const child of children[at]) waiting.push([child, callees.below(parent, rows[child]!, rows[child]!.bytes ?? 0)]);
    }
  }
  return { callers: callers.tree, callees: callees.tree };
}
