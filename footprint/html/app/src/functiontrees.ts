// Functions as trees: by their calls, by their objects, and by how much more they asked for.

import { type Amount, colourOwners, setAmounts } from "./amounts";
import type { Legend } from "./legend";
import { printable, shortened, shortOwners } from "./names";
import type { Table } from "./table";
import { sums, Tree } from "./tree";
import type { CallRow, HeapShare } from "./types";

export type Share = Pick<HeapShare, "owner" | "symbol" | "name" | "bytes">;
export type ShownTree = { tree: Tree; legend: Legend };

export function callTree(rows: Table<CallRow>, total: number, amount: Amount): ShownTree {
  const tree = new Tree();
  const owners = [""];
  const bytes: (number | null)[] = [total];
  const blocks: (number | null)[] = [null];
  const nodes = new Map<number, number>([[0, tree.add(-1, "[all calls]")]]);
  for (const row of rows.rows()) {
    const node = tree.add(nodes.get(row.parent) ?? 0, shortened(printable(row.name)),
      `${printable(row.symbol ?? row.name)}\n${printable(row.owner)}`);
    nodes.set(row.node, node);
    owners[node] = row.owner;
    bytes[node] = row.bytes;
    blocks[node] = row.block_count;
  }
  for (const node of tree.children[0]) {
    const count = blocks[node];
    if (count !== null) blocks[0] = (blocks[0] ?? 0) + count;
  }
  setAmounts(tree, bytes, blocks, amount);
  return { tree, legend: colourOwners(tree, owners) };
}

/**
 * Build a tree of objects and their functions, which stand alone without an object; return also the object of each node,
 * and the row of each function.
 */
export function functionTree<Row extends { owner: string; symbol: string | null; name: string }>(rows: Row[]):
    { tree: Tree; owners: string[]; rowOf: (Row | null)[] } {
  const tree = new Tree();
  tree.add(-1, "[total]");
  const owners = [""];
  const rowOf: (Row | null)[] = [null];
  const groups = new Map<string, number>();
  const short = shortOwners(new Set(rows.map((row) => row.owner)));
  for (const row of rows) {
    let group = groups.get(row.owner);
    if (!row.owner) group = 0;
    if (group === undefined) {
      group = tree.add(0, shortened(printable(short(row.owner))), printable(row.owner));
      groups.set(row.owner, group);
      owners[group] = row.owner;
      rowOf[group] = null;
    }
    const node = tree.add(group, shortened(printable(row.name)), printable(row.symbol ?? row.name));
    owners[node] = row.owner;
    rowOf[node] = row;
  }
  return { tree, owners, rowOf };
}

export function shareTree(rows: Table<HeapShare>, amount: Amount): ShownTree {
  const { tree, owners, rowOf } = functionTree(rows.rows());
  setAmounts(tree, sums(tree, rowOf.map((row) => row?.bytes ?? null)), sums(tree, rowOf.map((row) => row?.block_count ?? null)), amount);
  return { tree, legend: colourOwners(tree, owners) };
}
