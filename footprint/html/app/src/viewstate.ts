// What the reader chose of a view, in the state of the report.

import type { Sort } from "./headings";
import { decoded, encoded } from "./names";
import type { Store } from "./store";
import type { Tree } from "./tree";

// The children of a node with a name: two calls of one function have the same.
const called = (tree: Tree, parent: number, name: string) =>
  tree.children[parent].filter((one) => tree.names[one] === name).sort((one, other) => one - other);

// The path of a node as a text: the names from the top down, with a number where nodes before it are called so, too.
function pathOf(tree: Tree, node: number): string {
  return tree.path(node).map((one) => {
    const name = encoded(tree.names[one]);
    const place = called(tree, tree.parents[one], decoded(name)).indexOf(one);
    return place > 0 ? `${name};${place}` : name;
  }).join("/");
}

// Find the node with a path; the whole tree where there is none.
function nodeOf(tree: Tree, path: string | null): number {
  let node: number | undefined = 0;
  for (const part of path?.split("/") ?? []) {
    const [name, place] = part.split(";");
    node = called(tree, node, decoded(name))[Number(place ?? 0)];
    if (node === undefined) return 0;
  }
  return node;
}

/** The shown node of a picture in the state, and whether only its small parts are shown. */
export function zoomState(store: Store, name: string, tree: Tree): { get(): [node: number, isRest: boolean]; set(node: number, isRest: boolean): void } {
  return {
    get: () => [nodeOf(tree, store.get(`${name}.zoom`)), store.get(`${name}.others`) !== null],
    set(node, isRest) {
      // A leaf is shown within its parent.
      const target = tree.children[node].length ? node : Math.max(0, tree.parents[node]);
      store.set(`${name}.zoom`, target ? pathOf(tree, target) : null);
      store.set(`${name}.others`, isRest ? "1" : null);
    },
  };
}

/** The order of a table in the state: the key of a column, `name` for the names; with a minus where it descends. */
export function sortState(store: Store, name: string, tree: Tree): { get(): Sort; set(sort: Sort): void } {
  const given: Sort = { column: tree.columns[tree.sortedBy], isDescending: true };
  const text = ({ column, isDescending }: Sort) => `${isDescending ? "-" : ""}${column?.key ?? "name"}`;
  return {
    get() {
      const told = store.get(name);
      const key = told?.replace(/^-/, "");
      const column = key === "name" ? null : tree.columns.find((one) => one.key === key);
      return told === null || column === undefined ? given : { column, isDescending: told.startsWith("-") };
    },
    set(sort) {
      store.set(name, given.column !== undefined && text(sort) === text(given) ? null : text(sort));
    },
  };
}

/** The colours of the legend that the reader chose; none for all of them. */
export function chosenColours(store: Store, name: string): Set<number> {
  return new Set((store.get(name) ?? "").split(",").filter(Boolean).map(Number));
}
