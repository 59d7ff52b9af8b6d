// What tables and pictures show: a tree by columns, node 0 being all of it.

import { formatBytes } from "./units";

/** A column of a tree table. */
export interface Column {
  key: string;
  label: string;
  /** What it is sorted by and what a CSV has; null where there is nothing. */
  value(node: number): number | string | null;
  text(node: number): string;
  /** What it is sorted by where that is not its value. */
  order?(node: number): number | null;
  /** Whether a mark of its text is shown rather than the text. */
  isEvidence?: boolean;
  /** Whether a bar shows the text as a share. */
  share?(node: number): number;
}

export class Tree {
  readonly names: string[] = [];
  /** What to say of a node beyond its name: the linker's name, or the whole path. */
  readonly titles: (string | null)[] = [];
  readonly parents: number[] = [];
  readonly children: number[][] = [];
  /** How large a node is drawn, with all below it. */
  readonly areas: number[] = [];
  /** Which colour it has; see `picture.ts`. */
  readonly colours: number[] = [];
  readonly hatched: boolean[] = [];
  columns: Column[] = [];
  /** How an area is written. */
  amount: (area: number) => string = formatBytes;
  /** Which column the table begins to be sorted by. */
  sortedBy = 0;

  /** Add a node behind its parent; give its number. */
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

  /** Give the nodes from below the first one to a node. */
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

/** Add up what leaves have, for all nodes; unknown is null, and nothing where all is unknown. */
export function sums(tree: Tree, own: (number | null)[]): (number | null)[] {
  const found = own.slice();
  for (let node = tree.size - 1; node > 0; node -= 1) {
    const value = found[node];
    const parent = tree.parents[node];
    if (value !== null && value !== undefined) found[parent] = (found[parent] ?? 0) + value;
  }
  return found.map((one) => one ?? null);
}
