// Objects as a tree: below each those that it needs.

import type { LedgerAnswer } from "./data";
import { cell, UNUSED, USED } from "./kinds";
import { printable, shortened } from "./names";
import { table } from "./table";
import { Tree } from "./tree";
import { column } from "./treecolumns";
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
