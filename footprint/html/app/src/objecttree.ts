// Objects as trees: below each those that would leave with it, or those that it needs.

import { type LedgerAnswer, table } from "./data";
import { cell, UNUSED, USED } from "./kinds";
import { printable, shortened } from "./names";
import { column, sums, Tree } from "./tree";
import { grouped } from "./units";

/**
 * Build the tree of needs: each object below every object that needs it. The needs of an object are listed below its
 * first node only; otherwise the tree could be endless.
 */
export function needTree(audit: LedgerAnswer): Tree {
  const rows = table(audit.objects);
  const [paths, names, needs] = rows.columns("path", "name", "needs");
  const [own, retained] = rows.columns("own_bytes", "retained_bytes");
  const rowOfPath = new Map(paths.map((path, row) => [path, row] as const));
  const tree = new Tree();
  const rowOf = [-1];
  const symbols: (number | null)[] = [null];
  const marks = [""];
  const seen = new Set<number>();
  // Without a search for findings, no symbols are read.
  const isRead = needs.some((some) => some?.some((one) => one.symbol_count !== null));
  const markOf = (count: number | null) => (count === null ? (isRead ? "stands in" : "") : count ? "" : "unused");
  tree.add(-1, "[all objects]");
  const waiting: number[] = [];
  const add = (parent: number, row: number, count: number | null, mark: string) => {
    const node = tree.add(parent, printable(shortened(names[row] || paths[row])), printable(paths[row]), mark === "unused" ? UNUSED : USED);
    rowOf[node] = row;
    symbols[node] = count;
    marks[node] = mark;
    if (seen.has(row)) {
      if (needs[row]?.length) marks[node] = mark ? `${mark}, repeated` : "repeated";
    } else {
      seen.add(row);
      waiting.push(node);
    }
  };
  const addNeeds = () => {
    for (let place = 0; place < waiting.length; place += 1) {
      for (const { path, symbol_count } of needs[rowOf[waiting[place]]] ?? []) {
        const row = rowOfPath.get(path);
        if (row !== undefined) add(waiting[place], row, symbol_count, markOf(symbol_count));
      }
    }
    waiting.length = 0;
  };
  const isNeeded = new Set(needs.flatMap((some, row) => (some ?? []).map((one) => rowOfPath.get(one.path)).filter((one) => one !== row)));
  // Objects that nobody needs come first. Objects that need only each other are reached from none of them: they follow.
  for (const wanted of [false, true]) {
    paths.forEach((_, row) => {
      if (seen.has(row) || isNeeded.has(row) !== wanted) return;
      add(0, row, null, "");
      addNeeds();
    });
  }
  const of = (values: number[]) => (node: number) => (rowOf[node] < 0 ? null : values[rowOf[node]]);
  tree.sortedBy = -1;
  tree.columns = [
    column("aside", "Own", of(own), cell),
    column("retained", "Retained", of(retained), cell),
    column("symbols", "Symbols", (node) => symbols[node], (count) => (count === null ? "" : count ? grouped(count) : "none")),
    column("edge", "Need", (node) => marks[node], String),
  ];
  return tree;
}

// Add each object below the object that holds it. An object that nobody holds is added below the root.
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
