// Which nodes of a tree a table shows, and in what order. Of 100,000 nodes that takes long: it yields where it can wait.

import type { Column, Tree } from "./tree";

/** How many nodes are dealt with between two yields. */
const STEP = 2000;

/** What a filter found. */
export interface Found {
  /** Of each node, whether it is found, and why: `IS_FOUND` and so on, or 0. */
  marks: Uint8Array;
  /** How many contain the text themselves. */
  count: number;
}

export const IS_FOUND = 1;
/** Something below it is found. */
export const HOLDS_FOUND = 2;
/** Something above it is found. */
const LIES_IN_FOUND = 4;

/** Find the nodes that are called by a text, in capitals or not, with what they lie in and what lies in them. */
export function* matching(tree: Tree, text: string): Generator<void, Found> {
  // Names are looked through as they stand: to write them all small first takes longer, and holds them twice.
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
  return { marks, count };
}

type Compare = (one: number, other: number) => number;

/** Sort what lies in each node by a column, null for the names. What has no value comes last. */
export function* ordered(tree: Tree, column: Column | null, isDescending: boolean): Generator<void, number[][]> {
  const valueOf = column ? column.order ?? column.value : (node: number) => tree.names[node];
  const values: (number | string | null)[] = [];
  for (let node = 0; node < tree.size; node += 1) {
    if (node % STEP === 0) yield;
    values.push(valueOf(node));
  }
  const turn = isDescending ? -1 : 1;
  const compare = (one: number, other: number) => {
    const [a, b] = [values[one], values[other]];
    if (a === b) return one - other;
    if (a === null || b === null) return a === null ? 1 : -1;
    return (a as number) < (b as number) ? -turn : turn;
  };
  const found: number[][] = [];
  for (const children of tree.children) {
    if (found.length % STEP === 0) yield;
    found.push(children.length > 1 ? yield* sorted(children, compare) : children);
  }
  return found;
}

// One sort of all would be one long step: runs are sorted, and merged two by two.
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
  const found: number[] = [];
  let [left, right] = [0, 0];
  while (left < one.length && right < other.length) {
    found.push(compare(one[left], other[right]) <= 0 ? one[left++] : other[right++]);
    if (found.length % STEP === 0) yield;
  }
  return found.concat(one.slice(left), other.slice(right));
}
