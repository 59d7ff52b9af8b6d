// The tables of answers.

import { type PackedTable, valuesOf } from "./columns";

/** A table of an answer, by columns. */
export class Table<Row> {
  readonly #known = new Map<string, unknown[]>();

  constructor(private readonly packed: PackedTable, private readonly texts: (string | null)[]) {}

  get size(): number {
    return this.packed.rows;
  }

  /** The names of the columns, in their order. */
  get keys(): string[] {
    return this.packed.keys;
  }

  /** Return a column; a table without rows has any column. */
  column<K extends keyof Row & string>(key: K): Row[K][] {
    return this.#values(key) as Row[K][];
  }

  columns<K extends (keyof Row & string)[]>(...keys: K): { [Place in keyof K]: Row[K[Place]][] } {
    return keys.map((key) => this.#values(key)) as { [Place in keyof K]: Row[K[Place]][] };
  }

  /** Return the rows as in the JSON, or some of them. */
  rows(from = 0, past = this.size): Row[] {
    const columns = this.packed.keys.map((key) => [key, this.#values(key)] as const);
    return Array.from({ length: Math.min(past, this.size) - from }, (_, place) => {
      const row: Record<string, unknown> = {};
      for (const [key, column] of columns) row[key] = column[from + place];
      return row as Row;
    });
  }

  #values(key: string): unknown[] {
    let found = this.#known.get(key);
    if (!found) this.#known.set(key, (found = valuesOf(this.packed, key, this.texts)));
    return found;
  }
}

/** A table of an answer; one without rows is an empty list. */
export type Rows<Row> = Table<Row> | never[];

const NO_ROWS = new Table<never>({ rows: 0, keys: [], texts: {}, steps: {}, values: {}, runs: {}, text_runs: {} }, []);

/** Return the rows of an answer as a table; a member that is absent has no rows. */
export function table<Row>(rows: Rows<Row> | undefined): Table<Row> {
  return rows instanceof Table ? rows : NO_ROWS;
}
