// The answers that stand in the page: tables as columns, see footprint/html/columns.py.

import { lookThrough } from "./names";

type Value = string | number | boolean | null | Value[] | { [key: string]: Value };

interface Packed {
  rows: number;
  keys: string[];
  texts: Record<string, number[]>;
  values: Record<string, Value[]>;
}

/** A table of an answer, by columns. */
export class Table<Row = any> {
  private readonly made = new Map<string, any[]>();

  constructor(private readonly packed: Packed, private readonly texts: string[]) {}

  get size(): number {
    return this.packed.rows;
  }

  /** Give a column; of a table without rows any. */
  column<T = any>(key: string): T[] {
    let found = this.made.get(key);
    if (!found) {
      const places = this.packed.texts[key];
      found = places
        ? places.map((place) => (place < 0 ? null : this.texts[place]))
        : (this.packed.values[key] ?? new Array(this.size).fill(null));
      this.made.set(key, found);
    }
    return found;
  }

  /** Give the rows as the JSON has them. */
  rows(): Row[] {
    const columns = this.packed.keys.map((key) => [key, this.column(key)] as const);
    return Array.from({ length: this.size }, (_, row) =>
      Object.fromEntries(columns.map(([key, column]) => [key, column[row]])) as Row);
  }
}

const NOTHING = new Table({ rows: 0, keys: [], texts: {}, values: {} }, []);

/** Give a member of an answer as a table; a list without rows is one too. */
export function table<Row = any>(value: Table<Row> | unknown): Table<Row> {
  return value instanceof Table ? value : NOTHING;
}

/** Give an answer as the command prints it: one row of a table a line. */
export function written(answer: Record<string, unknown>): string {
  const members = Object.entries(answer).map(([key, value]) => {
    const rows = value instanceof Table ? value.rows() : null;
    const text = rows
      ? `[\n  ${rows.map((row) => JSON.stringify(row)).join(",\n  ")}\n]`
      : JSON.stringify(value, (_, inner) => (inner instanceof Table ? inner.rows() : inner));
    return `${JSON.stringify(key)}: ${text}`;
  });
  return `{${members.join(",\n")}}\n`;
}

/** Read the answers out of the page. */
export async function readAnswers(): Promise<any> {
  const element = document.getElementById("data")!;
  const encoded = element.textContent!;
  element.remove();
  const binary = atob(encoded);
  const bytes = new Uint8Array(binary.length);
  for (let place = 0; place < bytes.length; place += 1) bytes[place] = binary.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const text = await new Response(stream).text();
  lookThrough(text);
  const whole = JSON.parse(text);
  return unpacked(whole.answers, fromFrontCoded(whole.texts.shared, whole.texts.rests));
}

function fromFrontCoded(shared: number[], rests: string[]): string[] {
  let before = "";
  return rests.map((rest, place) => (before = before.slice(0, shared[place]) + rest));
}

function unpacked(value: any, texts: string[]): any {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  if (typeof value.rows === "number" && Array.isArray(value.keys) && value.texts && value.values) {
    return new Table(value, texts);
  }
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, unpacked(member, texts)]));
}
