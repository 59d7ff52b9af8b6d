// The order of a tree table. With 100,000 nodes a sort takes long: it yields between its steps.

import type { Column, Tree } from "./tree";

/** The number of nodes between two yields. */
const STEP = 2000;

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
