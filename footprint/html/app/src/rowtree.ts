// Rows as a tree: owner, section and symbol.

import type { Table } from "./data";
import { KIND_NAMES } from "./kinds";
import { printable, shortened, shortOwners } from "./names";
import { sums, Tree } from "./tree";
import type { Row } from "./types";

/** The number of nodes that are added between two yields. */
const STEP = 2000;

/** A tree of rows. */
export interface RowTree {
  tree: Tree;
  /** The row of each leaf; -1 for a group. */
  rowOf: number[];
}

/** The columns that rows of a ledger and rows of changes have in common. */
type Named = Pick<Row, "owner" | "section" | "symbol" | "name" | "kind">;

/** The grouping of a ledger above its owners: the name of the group of a row. */
export type GroupOf = (row: number) => string;

// Put rows together by a key.
function together<K>(rows: number[], keyOf: (row: number) => K): Map<K, number[]> {
  const found = new Map<K, number[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const some = found.get(key);
    if (some) some.push(row);
    else found.set(key, [row]);
  }
  return found;
}

export interface TreeOptions {
  /** Renames owners. */
  nameOf?: (owner: string) => string;
  /** Groups above the owners. */
  group?: GroupOf;
  /** Whether sections are left out, because the groups are sections. */
  hasNoSections?: boolean;
  /** Parts that no row has. */
  more?: { name: string; bytes: number }[];
}

/** Build a tree of owners, sections and symbols. A group with a single nameless row becomes one node. */
export function* rowTree(
  rows: Pick<Table<Named>, "column" | "columns">, area: (row: number) => number, { nameOf = (owner) => owner, group, hasNoSections, more = [] }: TreeOptions = {},
): Generator<void, RowTree> {
  const [symbols, names, kinds, sections] = rows.columns("symbol", "name", "kind", "section");
  yield;
  const owners = rows.column("owner").map(nameOf);
  const tree = new Tree();
  const rowOf = [-1];
  const short = shortOwners(new Set(owners));
  const add = (parent: number, name: string, title: string | null, row: number) => {
    const node = tree.add(parent, shortened(printable(name)), title === null ? null : printable(title),
      row < 0 ? 0 : Math.max(0, KIND_NAMES.indexOf(kinds[row])));
    rowOf[node] = row;
    return node;
  };
  const addLeaves = function* (parent: number, found: number[]): Generator<void> {
    for (const row of found) {
      const name = names[row] ?? symbols[row] ?? `[${kinds[row]}]`;
      add(parent, name, symbols[row] === name ? null : symbols[row], row);
      if (tree.size % STEP === 0) yield;
    }
  };
  // A single nameless row stands for its whole group.
  const isWhole = (found: number[]) => found.length === 1 && symbols[found[0]] === null;
  const wholeName = (group: string, row: number) => (names[row] ? `${group} ${names[row]}` : group);
  const addSection = function* (parent: number, section: string | null, found: number[]): Generator<void> {
    // Rows without a section belong to the owner itself.
    if (section === null) yield* addLeaves(parent, found);
    else if (isWhole(found)) add(parent, wholeName(section, found[0]), null, found[0]);
    else yield* addLeaves(add(parent, section, null, -1), found);
  };
  const addOwners = function* (parent: number, all: number[]): Generator<void> {
    yield;
    for (const [owner, found] of together(all, (row) => owners[row])) {
      yield;
      const name = short(owner);
      const title = name === owner ? null : owner;
      if (isWhole(found)) {
        add(parent, wholeName(name, found[0]), title, found[0]);
        continue;
      }
      const node = add(parent, name, title, -1);
      for (const [section, some] of together(found, (row) => (hasNoSections ? null : sections[row]))) yield* addSection(node, section, some);
      yield;
    }
  };
  tree.add(-1, "[total]");
  const all = owners.map((_, row) => row);
  yield;
  if (!group) yield* addOwners(0, all);
  else for (const [name, found] of together(all, group)) yield* addOwners(add(0, name, null, -1), found);
  const own = rowOf.map((row) => (row < 0 ? null : area(row)));
  for (const { name, bytes } of more) {
    const node = add(0, name, null, -1);
    own[node] = bytes;
    tree.colours[node] = KIND_NAMES.indexOf("shared");
  }
  sums(tree, own).forEach((sum, node) => (tree.areas[node] = sum ?? 0));
  yield;
  colourGroups(tree);
  return { tree, rowOf };
}

/** Colour each group as its largest part. */
export function colourGroups(tree: Tree): void {
  const largest = new Array<number>(tree.size).fill(-1);
  for (let node = tree.size - 1; node > 0; node -= 1) {
    const parent = tree.parents[node];
    if (tree.areas[node] > largest[parent]) {
      largest[parent] = tree.areas[node];
      tree.colours[parent] = tree.colours[node];
    }
  }
}

/** Add up the values of rows for all nodes. */
export function nodeSums({ tree, rowOf }: RowTree, value: (row: number) => number | null): (number | null)[] {
  return sums(tree, rowOf.map((row) => (row < 0 ? null : value(row))));
}
