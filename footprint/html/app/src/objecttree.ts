// Objects as a tree: below each those that would leave with it.

import type { LedgerAnswer } from "./data";
import { cell, UNUSED, USED } from "./kinds";
import { printable, shortened } from "./names";
import { table } from "./table";
import { sums, Tree } from "./tree";
import { column } from "./treecolumns";

/** Add each object below the object that holds it. An object that nobody holds is added below the root. */
export function addNested(paths: string[], heldBy: (string | null)[], add: (parent: number, row: number) => number): void {
  const below = new Map<string | null, number[]>();
  const known = new Set(paths);
  heldBy.forEach((holder, row) => {
    const key = holder !== null && known.has(holder) && holder !== paths[row] ? holder : null;
    const some = below.get(key);
    if (some) some.push(row);
    else below.set(key, [row]);
  });
  const seen = new Set<number>();
  // In a damaged audit objects may hold each other: they are reached from no root, and are added below the root.
  for (const start of [...(below.get(null) ?? []), ...paths.keys()]) {
    const waiting: [number, number][] = [[0, start]];
    for (let place = 0; place < waiting.length; place += 1) {
      const [parent, row] = waiting[place];
      if (seen.has(row)) continue;
      seen.add(row);
      const node = add(parent, row);
      for (const one of below.get(paths[row]) ?? []) waiting.push([node, one]);
    }
  }
}

// The confidence with which each path is unused; that of the first finding that names it.
function unusedPaths(audit: LedgerAnswer): Map<string, string> {
  const unused = new Map<string, string>();
  for (const one of table(audit.findings).rows()) {
    if (one.rule !== "unused-library") continue;
    for (const path of [...one.leaves, one.subject]) {
      if (!unused.has(path)) unused.set(path, one.confidence);
    }
  }
  return unused;
}

/** Build the tree of objects: below each the objects that would leave the process with it. */
export function objectTree(audit: LedgerAnswer): Tree {
  const rows = table(audit.objects);
  const [paths, names, heldBy] = rows.columns("path", "name", "held_by");
  const [own, retained, tls] = rows.columns("own_bytes", "retained_bytes", "tls_bytes");
  const unused = unusedPaths(audit);
  const tree = new Tree();
  const rowOf = [-1];
  tree.add(-1, "[all objects]");
  addNested(paths, heldBy, (parent, row) => {
    const isUnused = unused.has(paths[row]);
    const name = printable(shortened(names[row] || paths[row]));
    const node = tree.add(parent, isUnused ? `${name} (unused)` : name, printable(paths[row]), isUnused ? UNUSED : USED);
    rowOf[node] = row;
    return node;
  });
  // The area of a node is its own bytes and those of the nodes below it.
  sums(tree, rowOf.map((row) => (row < 0 ? null : own[row]))).forEach((area, node) => (tree.areas[node] = area ?? 0));
  const of = (values: number[]) => (node: number) => (rowOf[node] < 0 ? tree.areas[node] : values[rowOf[node]]);
  const tlsOf = (node: number) => (rowOf[node] < 0 ? null : tls[rowOf[node]]);
  const unusedOf = (node: number) => (rowOf[node] < 0 ? "" : unused.get(paths[rowOf[node]]) ?? "");
  tree.sortedBy = 1;
  tree.columns = [
    column("own", "Own", of(own), cell),
    column("retained", "Retained", of(retained), cell),
    column("tls", "Per thread", tlsOf, cell),
    column("unused", "Unused", unusedOf, String),
  ];
  return tree;
}
