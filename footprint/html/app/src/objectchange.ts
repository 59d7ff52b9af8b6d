// How the objects of two audits differ, as a tree.

import { renamedOwners } from "./changetree";
import type { LedgerAnswer } from "./data";
import { cell, changeColour } from "./kinds";
import { printable, shortened } from "./names";
import { addNested } from "./objecttree";
import { table } from "./table";
import { sums, Tree } from "./tree";
import { column } from "./treecolumns";
import type { DiffAnswer, ObjectCost } from "./types";
import { formatChange } from "./units";

/** An object before and after. */
interface Pair {
  name: string;
  holder: string | null;
  before: ObjectCost | null;
  after: ObjectCost | null;
}

function pairsByPath(old: LedgerAnswer, now: LedgerAnswer, renamed: Map<string, string>): Map<string, Pair> {
  const newName = (path: string) => renamed.get(path) ?? path;
  const pairs = new Map<string, Pair>();
  for (const one of table(now.objects).rows()) pairs.set(one.path, { name: one.name, holder: one.held_by, before: null, after: one });
  for (const one of table(old.objects).rows()) {
    const found = pairs.get(newName(one.path));
    if (found) found.before = one;
    else pairs.set(newName(one.path), { name: one.name, holder: one.held_by === null ? null : newName(one.held_by), before: one, after: null });
  }
  return pairs;
}

/**
 * Build the tree of how the objects of two audits differ: each below the object that holds it now, or held it before; a
 * new one that no other new one holds, below the library that it came with.
 */
export function objectChangeTree(old: LedgerAnswer, now: LedgerAnswer, diff: DiffAnswer): Tree {
  const pairs = pairsByPath(old, now, renamedOwners(diff));
  const [paths, rows] = [[...pairs.keys()], [...pairs.values()]];
  const cameWith = new Map(table(diff.owner_changes).rows().filter((one) => one.old_owner === null).map((one) => [one.owner, one.came_with]));
  const holders = rows.map(({ holder }, row) => (holder !== null && cameWith.has(holder) ? holder : cameWith.get(paths[row]) ?? holder));
  const tree = new Tree();
  const rowOf = [-1];
  tree.add(-1, "[all objects]");
  const delta = (row: number, key: "own_bytes" | "retained_bytes") => (rows[row].after?.[key] ?? 0) - (rows[row].before?.[key] ?? 0);
  addNested(paths, holders, (parent, row) => {
    const name = printable(shortened(rows[row].name || paths[row]));
    const node = tree.add(parent, name, printable(paths[row]), changeColour(delta(row, "own_bytes")));
    rowOf[node] = row;
    return node;
  });
  sums(tree, rowOf.map((row) => (row < 0 ? null : Math.abs(delta(row, "own_bytes")))))
    .forEach((area, node) => (tree.areas[node] = area ?? 0));
  const side = (which: "before" | "after") => {
    const whole = rows.reduce((sum, one) => sum + (one[which]?.own_bytes ?? 0), 0);
    return (node: number): number | null => (rowOf[node] < 0 ? whole : rows[rowOf[node]][which]?.own_bytes ?? null);
  };
  const [before, after] = [side("before"), side("after")];
  const change = (node: number) => (after(node) ?? 0) - (before(node) ?? 0);
  const total = change(0);
  const retained = (node: number) => (rowOf[node] < 0 ? total : delta(rowOf[node], "retained_bytes"));
  tree.colours[0] = changeColour(total);
  const what = (node: number) => {
    const one = rowOf[node] < 0 ? null : rows[rowOf[node]];
    return !one || (one.before && one.after) ? "" : one.after ? "new" : "gone";
  };
  tree.columns = [
    column("change", "Change", change, formatChange, true),
    column("aside", "Retained", retained, formatChange, true),
    column("before", "Before", before, cell),
    column("after", "After", after, cell),
    column("status", "What", what, String),
  ];
  return tree;
}
