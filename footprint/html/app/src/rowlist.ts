// The rows that a tree table shows: those of opened groups that a filter has found, in their order.

import { csvLine } from "./names";
import { type Found, HOLDS_FOUND } from "./rows";
import type { Tree } from "./tree";

/** Browsers cannot lay out a taller element. */
export const MOST_ROWS = 500_000;
/** The lines of CSV that are written between two yields. */
const CSV_STEP = 500;

export class RowList {
  shown: number[] = [];
  /** The row that the keys move from. */
  active = 0;
  readonly #open = new Set<number>([0]);
  readonly #closed = new Set<number>();
  #found: Found | null = null;
  /** The place of each node among the shown rows, or -1. */
  readonly #places: Int32Array;

  /** `children` are those of each node, in the order of the table. */
  constructor(private readonly tree: Tree, private children: number[][]) {
    this.#places = new Int32Array(tree.size);
    // A few groups that hold everything are opened: closed they show little.
    if (tree.children[0].length <= 3) tree.children[0].forEach((node) => this.#open.add(node));
    this.#flatten();
  }

  /** Return whether the filter shows a node. */
  has(node: number): boolean {
    return this.#found === null || this.#found.marks[node] !== 0;
  }

  isOpen(node: number): boolean {
    if (!this.tree.children[node].length || this.#closed.has(node)) return false;
    return this.#open.has(node) || (this.#found !== null && (this.#found.marks[node] & HOLDS_FOUND) !== 0);
  }

  /** Return the place of a node among the shown rows, or -1. */
  placeOf(node: number): number {
    return this.#places[node];
  }

  order(children: number[][]): void {
    this.children = children;
    this.#flatten();
  }

  /** Show what a filter has found; null for all rows. */
  show(found: Found | null): void {
    this.#found = found;
    this.#closed.clear();
    this.#flatten();
  }

  /** Open or close all groups. */
  openAll(isOpen: boolean): void {
    this.#closed.clear();
    this.#open.clear();
    this.#open.add(0);
    if (isOpen) this.tree.children.forEach((children, node) => children.length && this.#open.add(node));
    else if (this.#found) this.tree.children.forEach((children, node) => node && children.length && this.#closed.add(node));
    this.#flatten();
  }

  toggle(node: number, isOpen: boolean): void {
    (isOpen ? this.#open : this.#closed).add(node);
    (isOpen ? this.#closed : this.#open).delete(node);
    this.#flatten();
  }

  /** Make a node the active row, and open the groups above it. */
  select(node: number): void {
    for (const one of this.tree.path(node).slice(0, -1)) {
      this.#open.add(one);
      this.#closed.delete(one);
    }
    this.active = node;
    this.#flatten();
  }

  #flatten(): void {
    const shown: number[] = [];
    const stack = [0];
    while (stack.length && shown.length < MOST_ROWS) {
      const node = stack.pop()!;
      shown.push(node);
      if (!this.isOpen(node)) continue;
      const children = this.children[node];
      for (let place = children.length - 1; place >= 0; place -= 1) if (this.has(children[place])) stack.push(children[place]);
    }
    this.shown = shown;
    this.#places.fill(-1);
    shown.forEach((node, place) => (this.#places[node] = place));
    if (this.#places[this.active] < 0) this.active = 0;
  }
}

/** Write rows as lines of CSV: their paths, and figures in bytes. */
export function* csvLines(tree: Tree, shown: number[]): Generator<void, string[]> {
  let depth = 1;
  for (const node of shown) depth = Math.max(depth, tree.level(node) - 1);
  const levels = Array.from({ length: depth }, (_, place) => `level ${place + 1}`);
  const lines = [csvLine([...levels, ...tree.columns.map((column) => column.label.toLowerCase())])];
  for (const node of shown) {
    if (lines.length % CSV_STEP === 0) yield;
    const path: (string | null)[] = node ? tree.path(node).map((one) => tree.names[one]) : [tree.names[0]];
    while (path.length < depth) path.push(null);
    lines.push(csvLine([...path, ...tree.columns.map((column) => column.value(node))]));
  }
  return lines;
}
