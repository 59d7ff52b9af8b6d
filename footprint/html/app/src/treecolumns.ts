// Columns of a tree table whose texts follow from their values.

import type { Column, Tree } from "./tree";
import { percent } from "./units";

/** Make a column whose texts follow from its values; a table sorts changes by their sizes. */
export function column<Value extends number | string | null>(
  key: string, label: string, value: (node: number) => Value, write: (value: Value) => string, isChange = false,
): Column {
  return { key, label, value, text: (node) => write(value(node)), order: isChange ? (node) => Math.abs(Number(value(node))) : undefined };
}

/** Make the column of the share that each node has in a whole. */
export function shareColumn(tree: Tree, whole: number): Column {
  return {
    key: "share", label: `Of ${tree.names[0]}`, value: (node) => (whole ? tree.areas[node] / whole : null),
    text: (node) => percent(tree.areas[node], whole), share: (node) => (whole ? tree.areas[node] / whole : 0),
  };
}
