// The data of the report. Python packs tables as columns (footprint/html/columns.py); here they become tables again.

import { lookThrough } from "./names";
import { nextTask } from "./scheduler";
import type {
  AuditAnswer, CallRow, CheckAnswer, DiffAnswer, FindingRow, FitLimit, FunctionBytes, GroupAnswer, GroupProjection, HeapAnswer, Note, PageMapRow,
  ProcessTotals, Projection, Release, Rows, Trend,
} from "./types";

/** The rows that are written between two yields. */
const PIECE_ROWS = 500;
/** The characters of base64 that are read between two yields: four of them are three bytes. */
const PIECE_CHARS = 1 << 19;

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
    if (!found) {
      const { texts, steps, values, runs, text_runs } = this.packed;
      const text = (place: number) => this.texts[place];
      found = texts[key] ? added(texts[key]).map(text)
        : steps[key] ? added(steps[key])
        : text_runs[key] ? repeated(text_runs[key][0].map(text), text_runs[key][1])
        : runs[key] ? repeated(...runs[key]) : values[key] ?? new Array<null>(this.size).fill(null);
      this.#known.set(key, found);
    }
    return found;
  }
}

interface PackedTable {
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

/** A variable in the pages of an object. */
export interface VariableRow {
  /** How far behind the end of the one before it that it begins. */
  gap_bytes: number;
  size_bytes: number;
  section: string;
  name: string | null;
}

/** The variables of each page map, by the number of the map; a saved audit has none. */
export type Variables = Record<string, { variables: Rows<VariableRow>; omitted_count: number }>;

/** The page maps of an audit, with their variables. */
export interface PageMapData {
  maps: Rows<PageMapRow> | undefined;
  variables: Variables;
}

/** A moment of a heap profile: a snapshot by its number, or a tally by its name. */
export interface Moment {
  file: string;
  moment: number | string;
  bytes: number;
  calls: Rows<CallRow>;
  shares: Rows<FunctionBytes>;
}

/** What every report holds. */
interface Common {
  warning: string;
  /** Why the command fails; "" where it does not. */
  failure: string;
  made: Made | null;
}

/** When and where an audit was made, or only the report of it. */
export interface Made {
  date: string;
  host: string;
  is_report: boolean;
}

/** An audit that was made where it could ask how many more the limits on tasks let run. */
interface Placed extends Common {
  limits?: Rows<FitLimit>;
}

export interface AuditData extends Placed {
  kind: "audit";
  audit: AuditAnswer;
  variables: Variables;
  check?: CheckAnswer;
}

export interface GroupData extends Placed {
  kind: "group";
  audit: GroupAnswer;
  check?: CheckAnswer;
}

export interface DiffData extends Common {
  kind: "diff";
  diff: DiffAnswer;
  old: AuditAnswer | GroupAnswer;
  audit: AuditAnswer | GroupAnswer;
  old_variables: Variables;
  variables: Variables;
}

export interface HeapData extends Common {
  kind: "heap";
  heap: HeapAnswer;
  /** All memory in use at each row of `heap.snapshots`. */
  used_bytes: number[];
  /** By the first name of each profile, the snapshots that the user named of it. */
  named: Record<string, (number | null)[]>;
  moments: Record<string, Moment>;
  /** By profile, which of its call trees the report lacks. */
  left_out: Record<string, string>;
}

/** The rows of any table. */
export type Cells = Rows<Record<string, unknown>>;

/** Any answer, with the important parts of its text. */
export interface AnswerData extends Common {
  kind: "answer";
  answer: Record<string, unknown> & {
    count?: number;
    target?: { command?: string };
    whatif?: object;
    figures?: DiffAnswer["figures"];
    changes?: DiffAnswer["owner_changes"];
    saving?: { count: number; per_process_bytes: number | null; private_bytes: number | null };
    findings?: Rows<FindingRow>;
    notes?: Rows<Note>;
    trends?: Rows<Trend>;
    samples?: Rows<{ ms: number; cost_bytes: number }>;
    releases?: Rows<Release>;
    totals?: ProcessTotals;
    group?: GroupAnswer["group"];
    classes?: GroupAnswer["classes"];
    projection?: Projection | GroupProjection | null;
  };
  verdicts: Rows<{ text: string; is_failure: boolean }>;
  /** The figures and sentences below each heading. */
  parts: Rows<{ heading: string; sentences: string[]; facts: [string, string, string][] }>;
}

const NO_ROWS = new Table<never>({ rows: 0, keys: [], texts: {}, steps: {}, values: {}, runs: {}, text_runs: {} }, []);

/** Return the rows of an answer as a table; a member that is absent has no rows. */
export function table<Row>(rows: Rows<Row> | undefined): Table<Row> {
  return rows instanceof Table ? rows : NO_ROWS;
}

/** Write an answer as the command prints it, in pieces: one row of a table in each line. */
export function* written(answer: object): Generator<void, BlobPart[]> {
  const pieces: BlobPart[] = ["{"];
  for (const [key, value] of Object.entries(answer) as [string, unknown][]) {
    pieces.push(`${pieces.length > 1 ? ",\n" : ""}${JSON.stringify(key)}: `);
    if (value instanceof Table) {
      pieces.push("[\n  ");
      for (let from = 0; from < value.size; from += PIECE_ROWS) {
        // Each piece is copied in its own slice of time.
        pieces.push(new Blob([from ? ",\n  " : "", value.rows(from, from + PIECE_ROWS).map((row) => json(row)).join(",\n  ")]));
        yield;
      }
      pieces.push("\n]");
    } else {
      pieces.push(json(value));
    }
  }
  pieces.push("}\n");
  return pieces;
}

// Numbers above 2^53 are written digit by digit: a browser has some of them exactly, such as addresses of pages, and rounds
// their digits.
const mark = `${Math.random()}:`;
const digits = new RegExp(`"${mark}(-?\\d+)"`, "g");
const plain = (_: string, inner: unknown) => (inner instanceof Table ? inner.rows()
  : typeof inner === "number" && Number.isInteger(inner) && !Number.isSafeInteger(inner) ? mark + BigInt(inner) : inner);
const json = (value: unknown): string => JSON.stringify(value, plain).replace(digits, "$1");

/** The data of a report of any kind. */
export type ReportData = AnswerData | AuditData | DiffData | GroupData | HeapData;

/** Read the data out of the report. */
export async function readData(): Promise<ReportData> {
  const element = document.getElementById("data")!;
  const encoded = element.textContent!;
  element.remove();
  let at = 0;
  const stream = new ReadableStream<BufferSource>({
    async pull(control) {
      await nextTask();
      const binary = atob(encoded.slice(at, (at += PIECE_CHARS)));
      if (!binary) return control.close();
      const bytes = new Uint8Array(binary.length);
      for (let place = 0; place < bytes.length; place += 1) bytes[place] = binary.charCodeAt(place);
      control.enqueue(bytes);
    },
  });
  const text = await new Response(stream.pipeThrough(new DecompressionStream("deflate"))).text();
  await nextTask();
  lookThrough(text);
  await nextTask();
  // Two lines: one alone would be one long step.
  const [answers, texts] = text.split("\n");
  const known: (string | null)[] = JSON.parse(texts);
  await nextTask();
  return unpacked(JSON.parse(answers), known) as ReportData;
}

// Add each difference to the value before it.
function added(steps: number[]): number[] {
  let sum = 0;
  return steps.map((step) => (sum += step));
}

function repeated(values: unknown[], counts: number[]): unknown[] {
  return values.flatMap((value, place) => new Array<unknown>(counts[place]).fill(value));
}

function isPacked(value: object): value is PackedTable {
  return "rows" in value && typeof value.rows === "number" && "keys" in value && "texts" in value && "values" in value;
}

function unpacked(value: unknown, texts: (string | null)[]): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  if (isPacked(value)) return new Table(value, texts);
  // A file may be called `constructor`: no name may find what each object of the language has.
  return Object.setPrototypeOf(Object.fromEntries(Object.entries(value).map(([key, member]) => [key, unpacked(member, texts)])), null);
}

/** An audit of a process, or of a group that is shown as one: the totals that both have. */
export type LedgerAnswer = Omit<AuditAnswer, "totals" | "projection" | "verb" | "run"> & { totals: Pick<AuditAnswer["totals"], "private_bytes"> };
