// The tree of the rows that differ between two audits.

import { cell, changeColour } from "./kinds";
import { nodeSums, rowTree } from "./rowtree";
import { runAtOnce } from "./scheduler";
import { table } from "./table";
import { Tree } from "./tree";
import { column } from "./treecolumns";
import type { DiffAnswer } from "./types";
import { formatBytes, formatChange } from "./units";

/** Return the new names of the owners that have another name than before. */
export function renamedOwners(diff: DiffAnswer): Map<string, string> {
  const found = new Map<string, string>();
  for (const one of table(diff.owner_changes).rows()) {
    if (one.old_owner !== null && !one.is_gone) found.set(one.old_owner, one.owner);
  }
  return found;
}

/** Build the tree of the rows that differ; the area of a row is the size of its change. */
export function changeTree(diff: DiffAnswer): Tree {
  const rows = table(diff.diff);
  const delta = rows.column("delta_bytes");
  // A row that is gone has the old name of its owner: it is shown below the new name.
  const renamed = renamedOwners(diff);
  const built = runAtOnce(rowTree(rows, (row) => Math.abs(delta[row]), { nameOf: (owner) => renamed.get(owner) ?? owner }));
  const { tree, rowOf } = built;
  tree.names[0] = "[what differs]";
  tree.amount = (area) => `${formatBytes(area)}, grown and shrunk,`;
  const status = rows.column("status");
  const [old, now] = rows.columns("old_bytes", "new_bytes");
  const [oldWritable, newWritable] = rows.columns("old_writable_bytes", "new_writable_bytes");
  const isKnown = (row: number) => old[row] !== null && now[row] !== null;
  const before = nodeSums(built, (row) => (isKnown(row) ? old[row] : oldWritable[row]));
  const after = nodeSums(built, (row) => (isKnown(row) ? now[row] : newWritable[row]));
  const change = nodeSums(built, (row) => delta[row]);
  for (let node = 0; node < tree.size; node += 1) tree.colours[node] = changeColour(change[node] ?? 0);
  const statusOf = (node: number) => (rowOf[node] < 0 ? "" : status[rowOf[node]]);
  tree.columns = [
    column<number>("change", "Change", (node) => change[node] ?? 0, formatChange, true),
    column("before", "Before", (node) => before[node], cell),
    column("after", "After", (node) => after[node], cell),
    column("status", "What", statusOf, String),
  ];
  return tree;
}
