// The colours of kinds of memory, of changes and of objects, by their numbers.

import { colourOf } from "./colours";
import { formatBytes } from "./units";
import { KINDS } from "./words";

/** The names of colours: the number of a kind of memory is its colour in `colours.ts`. */
export const KIND_NAMES: string[] = ["several", ...KINDS];
/** The colours of changes and of objects. */
export const [GROWN, SHRUNK, SAME] = [colourOf("grew"), colourOf("shrank"), colourOf("rest")];
export const [UNUSED, USED] = [colourOf("unused"), colourOf("rest")];

/** Return the colour of a change. */
export function changeColour(bytes: number): number {
  return bytes > 0 ? GROWN : bytes < 0 ? SHRUNK : SAME;
}

/** Write a size for a table: zero is a dash, unknown is empty. */
export function cell(size: number | null): string {
  return size === null ? "" : size === 0 ? "-" : formatBytes(size);
}
