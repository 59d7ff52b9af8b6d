// Any table of an answer as a tree table.

import { colourGroups } from "./colourgroups";
import { KIND_NAMES } from "./kinds";
import { printable, shortened, shortOwners } from "./names";
import type { TableSpec } from "./sections";
import type { Table } from "./table";
import { type AnyRow, memberValues, textOf } from "./tabletext";
import { type Column, sums, Tree } from "./tree";
import { grouped } from "./units";

/** Build the tree of a table; the rows of a group are below it. */
export function tableTree(rows: Table<AnyRow>, given: TableSpec): Tree {
  const [spec, columns] = given.columns ? [given, given.columns.split("|").map((one) => one.split(/ (.*)/))] : withAllColumns(rows.keys, given);
  const tree = new Tree();
  tree.add(-1, `[all ${grouped(rows.size)}]`);
  const groups = (spec.groups ?? []).map((key) => memberValues(rows, key));
  const names = spec.name.map((key) => memberValues(rows, key));
  const short = spec.hasPaths ? (name: string) => name : shortOwners([...groups, ...names].flatMap((column) => column.filter((one) => typeof one === "string")));
  const places = new Map<string, number>();
  const rowOf: (number | null)[] = [null];
  const kinds = rows.column("kind").map((kind) => KIND_NAMES.indexOf(String(kind)));
  const add = (parent: number, name: string, row: number | null) => {
    const node = tree.add(parent, shortened(printable(short(name))), printable(name), row === null ? 0 : Math.max(0, kinds[row]));
    rowOf[node] = row;
    return node;
  };
  for (let row = 0; row < rows.size; row += 1) {
    let parent = 0;
    let path = "";
    for (const column of groups) {
      const name = textOf("", column[row]) || "[none]";
      path += `\n${name}`;
      let place = places.get(path);
      if (place === undefined) places.set(path, (place = add(parent, name, null)));
      parent = place;
    }
    add(parent, names.map((column) => textOf("", column[row])).find(Boolean) ?? spec.unnamed ?? "[no name]", row);
  }
  tree.columns = columns.flatMap(([key, label], place) => {
    const column = columnOf(tree, key, label, memberValues(rows, key), rowOf, place === 0, spec);
    return column ? [column] : [];
  });
  colourGroups(tree);
  tree.sortedBy = spec.isOrdered ? -1 : 0;
  return tree;
}

function withAllColumns(keys: string[], spec: TableSpec): [TableSpec, string[][]] {
  const words = (key: string) => key.replace(/_bytes$/, "").replace(/s_count$/, "ses").replace(/_count$/, "s").replaceAll("_", " ");
  const label = (key: string) => words(key).replace(/^./, (first) => first.toUpperCase());
  return [{ ...spec, name: keys.slice(-1) }, (keys.length > 1 ? keys.slice(0, -1) : keys).map((key) => [key, label(key)])];
}

// Make a column; null where no row has a value. One that adds up gives the areas of the picture.
function columnOf(
  tree: Tree, key: string, label: string, values: unknown[], rowOf: (number | null)[], isFirst: boolean, spec: TableSpec,
): Column | null {
  if (values.every((value) => value === null || value === undefined || value === "")) return null;
  const own = rowOf.map((row) => (row === null ? null : values[row]));
  const isNumber = values.some((value) => typeof value === "number");
  if (!isNumber || /addr$/.test(key)) {
    return { key: `text-${key}`, label, value: (node) => textOf(key, own[node]), text: (node) => textOf(key, own[node]) };
  }
  const numbers = own.map((value) => (typeof value === "number" ? value : null));
  const shown = spec.hasTotals || (isFirst && (spec.hasSum || spec.groups)) ? sums(tree, numbers) : numbers;
  if (isFirst && spec.hasSum) shown.forEach((size, node) => (tree.areas[node] = Math.max(0, size ?? 0)));
  const most = shown.reduce<number>((largest, size) => Math.max(largest, Math.abs(size ?? 0)), 0);
  return {
    key, label, value: (node) => shown[node], text: (node) => textOf(key, shown[node]),
    order: /delta|saved|per_hour/.test(key) ? (node) => Math.abs(shown[node] ?? 0) : undefined,
    share: isFirst && most ? (node) => Math.abs(shown[node] ?? 0) / most : undefined,
  };
}
