// The rows of a tree table: filtering and sorting. With 100,000 nodes both take long: they yield between their steps.

import type { Column, Tree } from "./tree";

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

type Compare = (one: number, other: number) => number;

/** Sort the children of each node by a column, null for the names. Nodes without a value come last. */
export function* ordered(tree: Tree, column: Column | null, isDescending: boolean): Generator<void, number[][]> {
  const valueOf = column ? column.order ?? column.value : (node: number) => tree.names[node];
  const values: (number | string | null)[] = [];
  for (let node = 0; node < tree.size; node += 1) {
    if (node % STEP === 0) yield;
    values.push(valueOf(node));
  }
  const sign = isDescending ? -1 : 1;
  const compare = (one: number, other: number) => {
    const [a, b] = [values[one], values[other]];
    if (a === b) return one - other;
    if (a === null || b === null) return a === null ? 1 : -1;
    return a < b ? -sign : sign;
  };
  const found: number[][] = [];
  for (const children of tree.children) {
    if (found.length % STEP === 0) yield;
    found.push(children.length > 1 ? yield* sorted(children, compare) : children);
  }
  return found;
}

/** Put the children of a tree into the order that its table begins with: then the table is quick to make. */
export function* presort(tree: Tree): Generator<void, void> {
  const children = yield* ordered(tree, tree.columns[tree.sortedBy], true);
  children.forEach((some, node) => (tree.children[node] = some));
}

// A single sort would be one long step: this one sorts short runs and merges them in pairs.
function* sorted(nodes: number[], compare: Compare): Generator<void, number[]> {
  let runs: number[][] = [];
  for (let from = 0; from < nodes.length; from += STEP) {
    runs.push(nodes.slice(from, from + STEP).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const merged: number[][] = [];
    for (let place = 0; place < runs.length; place += 2) {
      merged.push(place + 1 < runs.length ? yield* merge(runs[place], runs[place + 1], compare) : runs[place]);
    }
    runs = merged;
  }
  return runs[0];
}

function* merge(one: number[], other: number[], compare: Compare): Generator<void, number[]> {
  if (compare(one[one.length - 1], other[0]) <= 0) return one.concat(other);
  const found: number[] = [];
  let [left, right] = [0, 0];
  while (left < one.length && right < other.length) {
    found.push(compare(one[left], other[right]) <= 0 ? one[left++] : other[right++]);
    if (found.length % STEP === 0) yield;
  }
  return found.concat(one.slice(left), other.slice(right));
}
