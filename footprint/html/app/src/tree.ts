// The trees that tables and pictures show; node 0 is the whole.

import { formatBytes } from "./units";

/** A column of a tree table. */
export interface Column {
  key: string;
  label: string;
  /** The value that the table sorts by and that CSV has; null where there is none. */
  value(node: number): number | string | null;
  text(node: number): string;
  /** The value that the table sorts by, where it differs from `value`. */
  order?(node: number): number | null;
  /** Whether the text is drawn as the mark of an evidence. */
  isEvidence?: boolean;
  /** The length of a bar behind the text, from 0 to 1. */
  share?(node: number): number;
}

export class Tree {
  readonly names: string[] = [];
  /** A second name: the linker name, or the full path. */
  readonly titles: (string | null)[] = [];
  readonly parents: number[] = [];
  readonly children: number[][] = [];
  /** The area of a node in the picture, the nodes below it included. */
  readonly areas: number[] = [];
  /** The number of its colour in `colours.ts`. */
  readonly colours: number[] = [];
  readonly hatched: boolean[] = [];
  columns: Column[] = [];
  /** Writes an area as text. */
  amount: (area: number) => string = formatBytes;
  /** The column that the table is sorted by at first; -1 for none. */
  sortedBy = 0;

  /** Add a node after its parent; return its number. */
  add(parent: number, name: string, title: string | null = null, colour = 0): number {
    const node = this.names.length;
    this.names.push(name);
    this.titles.push(title);
    this.parents.push(parent);
    this.children.push([]);
    this.areas.push(0);
    this.colours.push(colour);
    this.hatched.push(false);
    if (parent >= 0) this.children[parent].push(node);
    return node;
  }

  get size(): number {
    return this.names.length;
  }

  /** Return the nodes from a child of the root down to a node. */
  path(node: number): number[] {
    const found = [];
    for (let at = node; at > 0; at = this.parents[at]) found.push(at);
    return found.reverse();
  }

  level(node: number): number {
    let level = 1;
    for (let at = node; at > 0; at = this.parents[at]) level += 1;
    return level;
  }
}

/** Add up the values of all nodes from the leaves upwards; null is unknown, and so is the sum of unknown values. */
export function sums(tree: Tree, own: (number | null)[]): (number | null)[] {
  const found = own.slice();
  for (let node = tree.size - 1; node > 0; node -= 1) {
    const value = found[node];
    const parent = tree.parents[node];
    if (value !== null && value !== undefined) found[parent] = (found[parent] ?? 0) + value;
  }
  return found.map((one) => one ?? null);
}
