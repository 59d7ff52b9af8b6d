// Calls as a tree in which equal functions below one node are one node.

import { printable, shortened } from "./names";
import { Tree } from "./tree";
import type { CallRow } from "./types";

/** The name by which two calls of one function are known. */
export const nameOf = (row: { owner: string; symbol: string | null; name: string }) => `${row.owner}\n${row.symbol ?? row.name}`;

export class Merged {
  readonly tree = new Tree();
  readonly #places = new Map<string, number>();

  constructor() {
    this.tree.add(-1, "");
  }

  add(node: number, row: CallRow, bytes: number): void {
    this.tree.areas[node] += bytes;
    this.tree.names[node] = shortened(printable(row.name));
    this.tree.titles[node] = `${printable(row.symbol ?? row.name)}\n${printable(row.owner)}`;
  }

  /** Add bytes to a function below a node, and return its node. */
  below(parent: number, row: CallRow, bytes: number): number {
    const key = `${parent}\n${nameOf(row)}`;
    const node = this.#places.get(key) ?? this.tree.add(parent, "");
    this.#places.set(key, node);
    this.add(node, row, bytes);
    return node;
  }
}
