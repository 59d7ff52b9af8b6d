// The functions that hold most, at each moment with a call tree; and who calls one function, and whom it calls.

import { COLOURS } from "./colours";
import { table, type Moment } from "./data";
import { printable, shortened } from "./names";
import type { Layer, Snapshot } from "./timeline";
import { Tree } from "./tree";
import type { CallRow } from "./types";

const MOST_LAYERS = 8;
const nameOf = (row: { owner: string; symbol: string | null; name: string }) => `${row.owner}\n${row.symbol ?? row.name}`;

/** Return the layers of a chart: the functions that hold most at some moment, and all others. */
export function functionLayers(moments: Moment[]): Layer[] {
  const byMoment = new Map(moments.map((one) => [one.moment, new Map(table(one.shares).rows().map((row) => [nameOf(row), row] as const))]));
  const most = new Map<string, { name: string; bytes: number }>();
  for (const rows of byMoment.values()) {
    for (const [key, row] of rows) if (row.bytes > (most.get(key)?.bytes ?? 0)) most.set(key, { name: row.name, bytes: row.bytes });
  }
  const top = [...most].sort(([, one], [, other]) => other.bytes - one.bytes).slice(0, MOST_LAYERS);
  const of = (key: string, one: Snapshot) => byMoment.get(one.number)?.get(key)?.bytes ?? 0;
  const layers = top.map(([key, { name }], place) => ({
    name: shortened(printable(name), 60), colour: COLOURS[place + 1], size: (one: Snapshot) => of(key, one),
  }));
  const others = (one: Snapshot) => {
    let sum = 0;
    for (const row of byMoment.get(one.number)?.values() ?? []) sum += row.bytes;
    return sum - top.reduce((all, [key]) => all + of(key, one), 0);
  };
  return [...layers, { name: "other functions", colour: COLOURS[0], size: others }];
}

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

/** A tree in which equal functions below one node are one node. */
class Merged {
  readonly tree = new Tree();
  readonly #places = new Map<string, number>();

  constructor() {
    this.tree.add(-1, "");
  }

  add(node: number, row: CallRow, bytes: number): void {
    this.tree.areas[node] += bytes;
    this.tree.names[node] = shortened(printable(row.name));
    this.tree.titles[node] = `${printable(row.symbol ?? row.name)}\n${printable(row.owner)}`;
  }

  /** Add bytes to a function below a node, and return its node. */
  below(parent: number, row: CallRow, bytes: number): number {
    const key = `${parent}\n${nameOf(row)}`;
    const node = this.#places.get(key) ?? this.tree.add(parent, "");
    this.#places.set(key, node);
    this.add(node, row, bytes);
    return node;
  }
}
