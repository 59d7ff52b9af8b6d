// Adds rows to a tree, below their owners and sections.

import { KIND_NAMES } from "./kinds";
import { printable, shortened, shortOwners } from "./names";
import type { Table } from "./table";
import type { Tree } from "./tree";
import type { Row } from "./types";

/** The number of nodes that are added between two yields. */
const STEP = 2000;

/** The columns that rows of a ledger and rows of changes have in common. */
export type NamedRows = Pick<Table<Pick<Row, "owner" | "section" | "symbol" | "name" | "kind">>, "column" | "columns">;

/** Put rows together by a key. */
export function together<K>(rows: number[], keyOf: (row: number) => K): Map<K, number[]> {
  const found = new Map<K, number[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const some = found.get(key);
    if (some) some.push(row);
    else found.set(key, [row]);
  }
  return found;
}

export interface Branches {
  /** Add a node, whose row is -1 for a group. */
  add(parent: number, name: string, title: string | null, row: number): number;
  /** Add rows. A group with a single nameless row becomes one node. */
  addOwners(parent: number, rows: number[]): Generator<void>;
}

/** `rowOf` takes the row of each node. */
export function branches(tree: Tree, rowOf: number[], rows: NamedRows, owners: string[], hasNoSections = false): Branches {
  const [symbols, names, kinds, sections] = rows.columns("symbol", "name", "kind", "section");
  const short = shortOwners(new Set(owners));
  const add = (parent: number, name: string, title: string | null, row: number) => {
    const node = tree.add(parent, shortened(printable(name)), title === null ? null : printable(title),
      row < 0 ? 0 : Math.max(0, KIND_NAMES.indexOf(kinds[row])));
    rowOf[node] = row;
    return node;
  };
  const addLeaves = function* (parent: number, found: number[]): Generator<void> {
    for (const row of found) {
      const name = names[row] ?? symbols[row] ?? `[${kinds[row]}]`;
      add(parent, name, symbols[row] === name ? null : symbols[row], row);
      if (tree.size % STEP === 0) yield;
    }
  };
  // A single nameless row stands for its whole group.
  const isWhole = (found: number[]) => found.length === 1 && symbols[found[0]] === null;
  const wholeName = (group: string, row: number) => (names[row] ? `${group} ${names[row]}` : group);
  const addSection = function* (parent: number, section: string | null, found: number[]): Generator<void> {
    // Rows without a section belong to the owner itself.
    if (section === null) yield* addLeaves(parent, found);
    else if (isWhole(found)) add(parent, wholeName(section, found[0]), null, found[0]);
    else yield* addLeaves(add(parent, section, null, -1), found);
  };
  const addOwners = function* (parent: number, all: number[]): Generator<void> {
    yield;
    for (const [owner, found] of together(all, (row) => owners[row])) {
      yield;
      const name = short(owner);
      const title = name === owner ? null : owner;
      if (isWhole(found)) {
        add(parent, wholeName(name, found[0]), title, found[0]);
        continue;
      }
      const node = add(parent, name, title, -1);
      for (const [section, some] of together(found, (row) => (hasNoSections ? null : sections[row]))) yield* addSection(node, section, some);
      yield;
    }
  };
  return { add, addOwners };
}
