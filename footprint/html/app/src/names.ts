// Foreign names made safe to show, as in footprint/formats/escape.py: text may hold characters that change its direction.

const PLAIN = /^[\x20-\x7e]*$/;
let areAllPlain = false;
const UNSAFE =
  /[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}\ud800-\udfff]/gu;

/**
 * Check all texts at once, in JSON that holds only ASCII: any other character is an escape in it. A check of each name
 * would take a fifth of the time in which the report is drawn.
 */
export function lookThrough(json: string): void {
  areAllPlain = !/\\[^"\\]|\x7f/.test(json);
}

/** Replace each character that could change the look of a line by an escape such as `\x1b`. */
export function printable(text: string): string {
  // Nearly all names are plain.
  if (areAllPlain || PLAIN.test(text)) return text;
  return text.replace(UNSAFE, (one) => {
    const code = one.codePointAt(0)!;
    const digits = code < 0x100 ? 2 : code < 0x10000 ? 4 : 8;
    return `\\${digits === 2 ? "x" : digits === 4 ? "u" : "U"}${code.toString(16).padStart(digits, "0")}`;
  });
}

/** Write a text for the address of the report. Half of a character above 0xffff has no code there. */
export function encoded(text: string): string {
  return encodeURIComponent(text.replace(/\p{Cs}/gu, ""));
}

/** Read a text of the address; whatever is no such text stays as it is. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Shorten a long name to its beginning and its end. */
export function shortened(text: string, most = 400): string {
  return text.length <= most ? text : `${text.slice(0, most / 2)}…${text.slice(-most / 2)}`;
}

// A path, and no command nor an operator of C++.
const PATH = /^(\/|[\w.~+-]+\/)[^\s(<=]*[^\s(<=/]$/;

/** Return whether a name is a path. */
export const isPath = (name: string): boolean => PATH.test(name);

/** Return a function that cuts a path to its last part, where no other of these owners has the same last part. */
export function shortOwners(owners: Iterable<string>): (owner: string) => string {
  const byLast = new Map<string, Set<string>>();
  for (const owner of owners) {
    if (!isPath(owner)) continue;
    const last = owner.slice(owner.lastIndexOf("/") + 1);
    byLast.set(last, (byLast.get(last) ?? new Set()).add(owner));
  }
  return (owner) => {
    const last = owner.slice(owner.lastIndexOf("/") + 1);
    return isPath(owner) && byLast.get(last)?.size === 1 ? last : owner;
  };
}

/** Write a row as CSV. A text that a spreadsheet would read as a formula gets an apostrophe before it. */
export function csvLine(row: (string | number | null)[]): string {
  const cell = (value: string | number | null) => {
    if (typeof value !== "string") return value === null ? "" : String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${row.map(cell).join(",")}\r\n`;
}
