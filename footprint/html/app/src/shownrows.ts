// The rows of a tree table from its first one to its last one, as text and on the screen.

import { csvLine } from "./names";
import type { Tree } from "./tree";

/** Browsers cannot lay out a taller element. */
export const MOST_ROWS = 500_000;
/** The lines of CSV that are written between two yields. */
const CSV_STEP = 500;

/** Return the nodes that have a row: those below an open one that a filter does not hide. */
export function shownRows(children: number[][], isOpen: (node: number) => boolean, isShown: (node: number) => boolean): number[] {
  const shown: number[] = [];
  const stack = [0];
  while (stack.length && shown.length < MOST_ROWS) {
    const node = stack.pop()!;
    shown.push(node);
    if (!isOpen(node)) continue;
    for (let place = children[node].length - 1; place >= 0; place -= 1) if (isShown(children[node][place])) stack.push(children[node][place]);
  }
  return shown;
}

/** Write rows as lines of CSV: their paths, and figures in bytes. */
export function* csvLines(tree: Tree, shown: number[]): Generator<void, string[]> {
  let depth = 1;
  for (const node of shown) depth = Math.max(depth, tree.level(node) - 1);
  const levels = Array.from({ length: depth }, (_, place) => `level ${place + 1}`);
  const lines = [csvLine([...levels, ...tree.columns.map((column) => column.label.toLowerCase())])];
  for (const node of shown) {
    if (lines.length % CSV_STEP === 0) yield;
    const path: (string | null)[] = node ? tree.path(node).map((one) => tree.names[one]) : [tree.names[0]];
    while (path.length < depth) path.push(null);
    lines.push(csvLine([...path, ...tree.columns.map((column) => column.value(node))]));
  }
  return lines;
}
