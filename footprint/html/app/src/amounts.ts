// The amounts of functions in a tree: as areas, columns and colours.

import { cell } from "./kinds";
import type { Legend } from "./legend";
import { printable, shortened, shortOwners } from "./names";
import type { Tree } from "./tree";
import { column, shareColumn } from "./treecolumns";
import { formatBytes, grouped } from "./units";

/** Writes an amount as text. */
export type Amount = (size: number) => string;

const PALETTE = 9;

/** Colour the largest owners, each in a colour of its own; return the legend. */
export function colourOwners(tree: Tree, owners: string[]): Legend {
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
  // In a faulty profile, callers add up to more than their callee: shares are of what they add up to.
  const below = tree.areas.map(() => 0);
  for (let node = tree.size - 1; node >= 0; node -= 1) {
    tree.areas[node] = Math.max(tree.areas[node], below[node]);
    if (node) below[tree.parents[node]] += tree.areas[node];
  }
  const total = tree.areas[0];
  const text = (size: number | null) => (size ? amount(size) : cell(size));
  tree.amount = amount;
  tree.columns = [
    column("bytes", amount === formatBytes ? "Bytes" : "Units", (node) => bytes[node], text),
    shareColumn(tree, total),
    ...(blocks.some((one) => one !== null) ? [column("blocks", "Blocks", (node) => blocks[node], (count) => (count === null ? "" : grouped(count)))] : []),
  ];
}
