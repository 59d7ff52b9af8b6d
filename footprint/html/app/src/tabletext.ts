// The values of any table of an answer, and their texts.

import type { Table } from "./table";
import { formatBytes, formatChange, grouped } from "./units";

export type AnyRow = Record<string, unknown>;

/** Return the values of a member, of rows that are objects also those within them. */
export function memberValues(rows: Table<AnyRow>, key: string): unknown[] {
  const [first, ...rest] = key.split(".");
  return rest.reduce<unknown[]>((values, name) => values.map((one) => (one as AnyRow | null)?.[name]), rows.column(first));
}

/** Write a value; its key says what it is. */
export function textOf(key: string, value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") {
    if (/addr$/.test(key)) return `0x${value.toString(16)}`;
    if (/(^|\.)pid/.test(key)) return String(value);
    if (!/(^|_)bytes(_per_hour)?$/.test(key)) return grouped(value);
    return /delta|per_hour/.test(key) ? formatChange(value) : value ? formatBytes(value) : "-";
  }
  if (Array.isArray(value)) return value.map((one) => textOf("", one)).join(", ");
  return typeof value === "boolean" ? (value ? "yes" : "no") : typeof value === "string" ? value : JSON.stringify(value);
}
