// The filter of a tree table. With 100,000 nodes it takes long: it yields between its steps.

import type { Tree } from "./tree";

/** The number of nodes between two yields. */
const STEP = 2000;

/** The result of a filter. */
export interface Found {
  /** What the found nodes take, each byte once. */
  area: number;
  /** For each node why it is shown, as bits: `IS_FOUND` and so on; 0 where it is hidden. */
  marks: Uint8Array;
  /** The number of nodes that contain the text themselves. */
  count: number;
}

const IS_FOUND = 1;
/** A node below it is found. */
export const HOLDS_FOUND = 2;
/** A node above it is found. */
const LIES_IN_FOUND = 4;
/** With colours: a node below it is found. */
const BELOW = 8;

/**
 * Find the nodes whose names contain a text, in upper or lower case, and the nodes above and below them. With colours,
 * only nodes of these colours are found, and of the others those that hold one.
 */
export function* matching(tree: Tree, text: string, colours: ReadonlySet<number>): Generator<void, Found> {
  // A regular expression needs no lower-case copy of each name.
  const wanted = new RegExp(text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "i");
  const { names, titles, parents } = tree;
  const marks = new Uint8Array(tree.size);
  let count = 0;
  for (let node = tree.size - 1; node > 0; node -= 1) {
    if (node % STEP === 0) yield;
    const title = titles[node];
    if (wanted.test(names[node]) || (title !== null && wanted.test(title))) {
      marks[node] |= IS_FOUND;
      count += 1;
    }
    if (marks[node]) marks[parents[node]] |= HOLDS_FOUND;
  }
  for (let node = 1; node < tree.size; node += 1) {
    if (marks[parents[node]] & (IS_FOUND | LIES_IN_FOUND)) marks[node] |= LIES_IN_FOUND;
  }
  // What a node takes beside its children.
  const own = tree.areas.slice();
  for (let node = 1; node < tree.size; node += 1) own[tree.parents[node]] -= tree.areas[node];
  if (colours.size) {
    count = 0;
    for (let node = tree.size - 1; node > 0; node -= 1) {
      if (node % STEP === 0) yield;
      const isWanted = (marks[node] & (IS_FOUND | LIES_IN_FOUND)) !== 0 && colours.has(tree.colours[node])
        && (tree.children[node].length === 0 || own[node] > 0);
      marks[node] = (isWanted ? IS_FOUND : 0) | (marks[node] & BELOW ? HOLDS_FOUND : 0);
      if (isWanted) count += 1;
      if (marks[node]) marks[tree.parents[node]] |= BELOW;
    }
  }
  let area = 0;
  for (let node = 1; node < tree.size; node += 1) if (marks[node] & (IS_FOUND | LIES_IN_FOUND)) area += Math.max(0, own[node]);
  return { marks, count, area };
}
