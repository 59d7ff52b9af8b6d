// The rows that a tree table shows: those of opened groups that a filter has found, in their order.

import { type Found, HOLDS_FOUND } from "./rowfilter";
import { shownRows } from "./shownrows";
import type { Tree } from "./tree";

export class RowList {
  shown: number[] = [];
  /** The row that the keys move from. */
  active = 0;
  #open = new Set<number>([0]);
  #closed = new Set<number>();
  #found: Found | null = null;
  /** The place of each node among the shown rows, or -1. */
  readonly #places: Int32Array;

  /** `children` are those of each node, in the order of the table. */
  constructor(private readonly tree: Tree, private children: number[][]) {
    this.#places = new Int32Array(tree.size);
    // A few groups that hold everything are opened: closed they show little.
    if (tree.children[0].length <= 3) tree.children[0].forEach((node) => this.#open.add(node));
    for (let [node, ...others] = tree.children[0]; node !== undefined && !others.length; [node, ...others] = tree.children[node]) this.#open.add(node);
    this.#flatten();
  }

  /** Return whether the filter shows a node. */
  readonly has = (node: number): boolean => this.#found?.marks[node] !== 0;

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
    const groups = this.tree.children.flatMap((children, node) => (node && children.length ? [node] : []));
    this.#open = new Set([0, ...(isOpen ? groups : [])]);
    this.#closed = new Set(!isOpen && this.#found ? groups : []);
    this.#flatten();
  }

  toggle(node: number, isOpen: boolean): void {
    (isOpen ? this.#open : this.#closed).add(node);
    (isOpen ? this.#closed : this.#open).delete(node);
    this.#flatten();
  }

  /** Make a node the active row, and open the groups above it. */
  select(node: number): void {
    const above = this.tree.path(node).slice(0, -1);
    above.forEach((one) => this.#open.add(one));
    above.forEach((one) => this.#closed.delete(one));
    this.active = node;
    this.#flatten();
  }

  #flatten(): void {
    this.shown = shownRows(this.children, (node) => this.isOpen(node), this.has);
    this.#places.fill(-1);
    this.shown.forEach((node, place) => (this.#places[node] = place));
    if (this.#places[this.active] < 0) this.active = 0;
  }
}
