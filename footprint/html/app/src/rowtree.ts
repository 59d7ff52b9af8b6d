// Rows as a tree: owner, section and symbol.

import { branches, type NamedRows, together } from "./branches";
import { colourGroups } from "./colourgroups";
import { KIND_NAMES } from "./kinds";
import { sums, Tree } from "./tree";

/** A tree of rows. */
export interface RowTree {
  tree: Tree;
  /** The row of each leaf; -1 for a group. */
  rowOf: number[];
}

/** The grouping of a ledger above its owners: the name of the group of a row. */
export type GroupOf = (row: number) => string;

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

/** Build a tree of owners, sections and symbols. */
export function* rowTree(
  rows: NamedRows, area: (row: number) => number, { nameOf = (owner) => owner, group, hasNoSections, more = [] }: TreeOptions = {},
): Generator<void, RowTree> {
  yield;
  const owners = rows.column("owner").map(nameOf);
  const tree = new Tree();
  const rowOf = [-1];
  const { add, addOwners } = branches(tree, rowOf, rows, owners, hasNoSections);
  tree.add(-1, "[total]");
  const all = [...owners.keys()];
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

/** Add up the values of rows for all nodes. */
export function nodeSums({ tree, rowOf }: RowTree, value: (row: number) => number | null): (number | null)[] {
  return sums(tree, rowOf.map((row) => (row < 0 ? null : value(row))));
}
