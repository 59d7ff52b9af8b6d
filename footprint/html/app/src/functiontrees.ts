// Functions as trees: by their calls, by their objects, and by how much more they asked for.

import type { Table } from "./data";
import { cell } from "./kinds";
import type { Legend } from "./legend";
import { printable, shortened, shortOwners } from "./names";
import { column, shareColumn, sums, Tree } from "./tree";
import type { CallRow, HeapShare } from "./types";
import { formatBytes, grouped } from "./units";

export type Amount = (size: number) => string;

export type Share = Pick<HeapShare, "owner" | "symbol" | "name" | "bytes">;
export type ShownTree = { tree: Tree; legend: Legend };

const PALETTE = 9;

// Give the largest owners colours of their own; return the legend.
function colourOwners(tree: Tree, owners: string[]): Legend {
  const places = new Map<string, number>();
  const sizes = new Map<string, number>();
  owners.forEach((owner, node) => {
    if (node) sizes.set(owner, Math.max(sizes.get(owner) ?? 0, tree.areas[node]));
  });
  const short = shortOwners(sizes.keys());
  [...sizes].sort((one, other) => other[1] - one[1]).forEach(([owner], place) => places.set(owner, place < PALETTE ? place + 1 : 0));
  owners.forEach((owner, node) => (tree.colours[node] = node ? places.get(owner)! : 0));
  return [...places].filter(([, place]) => place).map(([owner, place]) => [place, shortened(printable(short(owner)), 60)] as const);
}

/** Set the areas and the columns of a tree. */
export function setAmounts(tree: Tree, bytes: (number | null)[], blocks: (number | null)[], amount: Amount): void {
  bytes.forEach((one, node) => (tree.areas[node] = Math.max(0, one ?? 0)));
  const total = tree.areas[0];
  const text = (size: number | null) => (size ? amount(size) : cell(size));
  tree.amount = amount;
  tree.columns = [
    column("bytes", amount === formatBytes ? "Bytes" : "Units", (node) => bytes[node], text),
    shareColumn(tree, total),
    column("blocks", "Blocks", (node) => blocks[node], (count) => (count === null ? "" : grouped(count))),
  ];
}

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
