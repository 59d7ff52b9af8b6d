// Writes an answer as the command prints it.

import { Table } from "./table";

/** The rows that are written between two yields. */
const PIECE_ROWS = 500;

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
