// The columns of a table, as Python packs them (footprint/html/columns.py).

export interface PackedTable {
  rows: number;
  keys: string[];
  /** The numbers of texts: of each the difference to the one before it. */
  texts: Record<string, number[]>;
  /** Ascending integers, likewise. */
  steps: Record<string, number[]>;
  values: Record<string, unknown[]>;
  /** Values of neighbouring rows that are equal, and how many rows have each. */
  runs: Record<string, [unknown[], number[]]>;
  /** Numbers of texts, likewise. */
  text_runs: Record<string, [number[], number[]]>;
}

/** Return the values of a column. */
export function valuesOf(packed: PackedTable, key: string, known: (string | null)[]): unknown[] {
  const { texts, steps, values, runs, text_runs } = packed;
  const text = (place: number) => known[place];
  if (texts[key]) return added(texts[key]).map(text);
  if (steps[key]) return added(steps[key]);
  if (text_runs[key]) return repeated(text_runs[key][0].map(text), text_runs[key][1]);
  return runs[key] ? repeated(...runs[key]) : values[key] ?? new Array<null>(packed.rows).fill(null);
}

// Add each difference to the value before it.
function added(steps: number[]): number[] {
  let sum = 0;
  return steps.map((step) => (sum += step));
}

function repeated(values: unknown[], counts: number[]): unknown[] {
  return values.flatMap((value, place) => new Array<unknown>(counts[place]).fill(value));
}
