// The functions that ask for another amount than before, as a tree.

import type { Amount } from "./amounts";
import { functionTree, type Share, type ShownTree } from "./functiontrees";
import { changeColour, GROWN, SAME, SHRUNK } from "./kinds";
import { sums } from "./tree";
import { column } from "./treecolumns";
import { formatBytes, formatChange, grouped } from "./units";

/** Build the tree of the functions that have another amount; the area of a function is the size of its change. */
export function growthTree(before: Share[], now: Share[], amount: Amount): ShownTree {
  const key = (row: Share) => `${row.owner}\n${row.symbol ?? row.name}`;
  const [old, new_] = [before, now].map((rows) => new Map(rows.map((row) => [key(row), row])));
  const changed = [...new Map([...new_, ...old])].filter(([name]) => old.get(name)?.bytes !== new_.get(name)?.bytes);
  const { tree, rowOf } = functionTree(changed.map(([, row]) => row));
  const bytesIn = (side: Map<string, Share>) => sums(tree, rowOf.map((row) => (row === null ? null : side.get(key(row))?.bytes ?? 0)));
  const [was, is] = [bytesIn(old), bytesIn(new_)];
  const change = was.map((size, node) => (is[node] ?? 0) - (size ?? 0));
  sums(tree, rowOf.map((row, node) => (row === null ? null : Math.abs(change[node])))).forEach((size, node) => (tree.areas[node] = size ?? 0));
  for (let node = 0; node < tree.size; node += 1) tree.colours[node] = changeColour(change[node]);
  const text = (size: number) => (amount === formatBytes ? formatChange(size) : `${size > 0 ? "+" : ""}${grouped(size)}`);
  tree.names[0] = "[what differs]";
  tree.amount = (area) => `${amount(area)}, grown and shrunk,`;
  tree.columns = [
    column("change", "Grew", (node) => change[node], text, true),
    column("before", "Before", (node) => was[node] ?? 0, amount),
    column("after", "After", (node) => is[node] ?? 0, amount),
  ];
  return { tree, legend: [[GROWN, "grew"], [SHRUNK, "shrank"], [SAME, "as much as before"]] };
}
