// What a picture of a tree shows: the boxes of a node and of those below it, each in its place.

import { type Box, levels, type Placed, placedInRows } from "./layout";
import type { Tree } from "./tree";
import { placedInBoxes } from "./treemap";

export type Shape = "icicle" | "treemap" | "sunburst";
export const SHAPES: readonly (readonly [Shape, string])[] = [["icicle", "Icicle"], ["treemap", "Treemap"], ["sunburst", "Sunburst"]];

/** Parts that are too small to see: they are drawn as one. */
export const REST = -1;
/** The parts of the whole that are below the least share. */
export const OTHERS = -2;
/** Parts of the whole below this share are shown together. */
export const FOLDED_SHARE = 1 / 20;

const MOST_DEEP = 24;
const LEAST_SHARE = 1 / 3000;
const ROW_PX = 80;

/** Return the children of a node that are shown together; none where that would be all of them, or one. */
export function foldedChildren(tree: Tree, node: number): number[] {
  const children = tree.children[node].filter((one) => tree.areas[one] > 0);
  const small = children.filter((one) => tree.areas[one] < FOLDED_SHARE * tree.areas[node]);
  return small.length > 1 && small.length < children.length ? small : [];
}

/** Place the boxes of a node and of those below it in a picture; with `isRest` only of its children that are shown together. */
export function boxesOf(tree: Tree, node: number, isRest: boolean, shape: Shape, width: number, height: number): Placed[] {
  if (tree.areas[node] <= 0) return [];
  const deepest = shape === "icicle" ? Math.floor(height / 22) : shape === "sunburst" ? 7 : MOST_DEEP;
  const whole = wholeBox(tree, node, isRest, Math.min(MOST_DEEP, deepest));
  const depth = levels(whole);
  const order = (one: Placed, other: Placed) => Number(one.node === OTHERS) - Number(other.node === OTHERS) || other.value - one.value;
  if (shape === "treemap") return placedInBoxes(whole, order, width, height);
  if (shape === "sunburst") return placedInRows(whole, order, 2 * Math.PI, (Math.min(width, height) / 2 - 2) / (depth + 1));
  const row = Math.min(height / Math.max(1, depth), ROW_PX);
  const boxes = placedInRows(whole, order, width, row);
  // The crumbs above name the whole: only its parts have rows.
  return depth ? boxes.slice(1).map((box) => ({ ...box, y0: box.y0 - row, y1: box.y1 - row })) : boxes;
}

const areaOf = (tree: Tree, nodes: number[]) => nodes.reduce((all, one) => all + tree.areas[one], 0);

// The whole: its small parts stand together, or they alone are shown.
function wholeBox(tree: Tree, node: number, isRest: boolean, depth: number): Box {
  const others = foldedChildren(tree, node);
  if (!others.length) return boxOf(tree, node, tree.areas[node] * LEAST_SHARE, depth);
  const small = new Set(others);
  const shown = isRest ? others : tree.children[node].filter((one) => tree.areas[one] > 0 && !small.has(one));
  const area = isRest ? areaOf(tree, others) : tree.areas[node];
  const children = shown.map((one) => boxOf(tree, one, area * LEAST_SHARE, depth - 1));
  const rest = isRest ? 0 : areaOf(tree, others);
  if (rest) children.push({ node: OTHERS, own: rest, count: others.length });
  return { node, own: Math.max(0, area - areaOf(tree, shown) - rest), count: 0, children };
}

function boxOf(tree: Tree, node: number, least: number, depth: number): Box {
  const area = tree.areas[node];
  const parts = depth > 0 ? tree.children[node].filter((one) => tree.areas[one] > 0) : [];
  if (!parts.length) return { node, own: area, count: 0 };
  const rest = parts.filter((one) => tree.areas[one] < least);
  const children = rest.length < parts.length ? parts.filter((one) => tree.areas[one] >= least).map((one) => boxOf(tree, one, least, depth - 1)) : [];
  if (rest.length) children.push({ node: REST, own: areaOf(tree, rest), count: rest.length });
  return { node, own: Math.max(0, area - areaOf(tree, parts)), count: 0, children };
}

/** Return whether a filter finds a node of a picture of `root`, or anything in it. */
export function isWithin(tree: Tree, root: number, found: Uint8Array, node: number): boolean {
  if (node < 0) return node === OTHERS && foldedChildren(tree, root).some((one) => found[one]);
  return node === 0 || found[node] > 0 || tree.size <= 1;
}
