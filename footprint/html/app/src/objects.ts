// The trees of objects: what would leave with each, who needs whom, and how the objects of two audits differ.

import { table, type LedgerAnswer } from "./data";
import { choice } from "./choice";
import { el, fill, section } from "./dom";
import { cell, changeColour, GROWN, renamedOwners, SHRUNK, UNUSED, USED } from "./ledger";
import { printable, shortened } from "./names";
import type { Page } from "./page";
import { column, sums, Tree } from "./tree";
import type { DiffAnswer, ObjectCost } from "./types";
import { formatChange, grouped } from "./units";
import { treeView } from "./view";

/**
 * Build the tree of needs: each object below every object that needs it. The needs of an object are listed below its
 * first node only; otherwise the tree could be endless.
 */
export function needTree(audit: LedgerAnswer): Tree {
  const rows = table(audit.objects);
  const [paths, names, needs] = rows.columns("path", "name", "needs");
  const [own, retained] = rows.columns("own_bytes", "retained_bytes");
  const rowOfPath = new Map(paths.map((path, row) => [path, row] as const));
  const tree = new Tree();
  const rowOf = [-1];
  const symbols: (number | null)[] = [null];
  const marks = [""];
  const seen = new Set<number>();
  // Without a search for findings, no symbols are read.
  const isRead = needs.some((some) => some?.some((one) => one.symbol_count !== null));
  const markOf = (count: number | null) => (count === null ? (isRead ? "stands in" : "") : count ? "" : "unused");
  tree.add(-1, "[all objects]");
  const waiting: number[] = [];
  const add = (parent: number, row: number, count: number | null, mark: string) => {
    const node = tree.add(parent, printable(shortened(names[row] || paths[row])), printable(paths[row]), mark === "unused" ? UNUSED : USED);
    rowOf[node] = row;
    symbols[node] = count;
    marks[node] = mark;
    if (seen.has(row)) {
      if (needs[row]?.length) marks[node] = mark ? `${mark}, repeated` : "repeated";
    } else {
      seen.add(row);
      waiting.push(node);
    }
  };
  const addNeeds = () => {
    for (let place = 0; place < waiting.length; place += 1) {
      for (const { path, symbol_count } of needs[rowOf[waiting[place]]] ?? []) {
        const row = rowOfPath.get(path);
        if (row !== undefined) add(waiting[place], row, symbol_count, markOf(symbol_count));
      }
    }
    waiting.length = 0;
  };
  const isNeeded = new Set(needs.flatMap((some, row) => (some ?? []).map((one) => rowOfPath.get(one.path)).filter((one) => one !== row)));
  // Objects that nobody needs come first. Objects that need only each other are reached from none of them: they follow.
  for (const wanted of [false, true]) {
    paths.forEach((_, row) => {
      if (seen.has(row) || isNeeded.has(row) !== wanted) return;
      add(0, row, null, "");
      addNeeds();
    });
  }
  const of = (values: number[]) => (node: number) => (rowOf[node] < 0 ? null : values[rowOf[node]]);
  tree.sortedBy = -1;
  tree.columns = [
    column("aside", "Own", of(own), cell),
    column("retained", "Retained", of(retained), cell),
    column("symbols", "Symbols", (node) => symbols[node], (count) => (count === null ? "" : count ? grouped(count) : "none")),
    column("edge", "Need", (node) => marks[node], String),
  ];
  return tree;
}

// Add each object below the object that holds it. An object that nobody holds is added below the root.
function addNested(paths: string[], heldBy: (string | null)[], add: (parent: number, row: number) => number): void {
  const below = new Map<string | null, number[]>();
  const known = new Set(paths);
  heldBy.forEach((holder, row) => {
    const key = holder !== null && known.has(holder) && holder !== paths[row] ? holder : null;
    const some = below.get(key);
    if (some) some.push(row);
    else below.set(key, [row]);
  });
  const seen = new Set<number>();
  // In a damaged audit objects may hold each other: they are reached from no root, and are added below the root.
  for (const start of [...(below.get(null) ?? []), ...paths.keys()]) {
    const waiting: [number, number][] = [[0, start]];
    for (let place = 0; place < waiting.length; place += 1) {
      const [parent, row] = waiting[place];
      if (seen.has(row)) continue;
      seen.add(row);
      const node = add(parent, row);
      for (const one of below.get(paths[row]) ?? []) waiting.push([node, one]);
    }
  }
}

/** An object before and after. */
interface Pair {
  name: string;
  holder: string | null;
  before: ObjectCost | null;
  after: ObjectCost | null;
}

function pairsByPath(old: LedgerAnswer, now: LedgerAnswer, renamed: Map<string, string>): Map<string, Pair> {
  const newName = (path: string) => renamed.get(path) ?? path;
  const pairs = new Map<string, Pair>();
  for (const one of table(now.objects).rows()) pairs.set(one.path, { name: one.name, holder: one.held_by, before: null, after: one });
  for (const one of table(old.objects).rows()) {
    const found = pairs.get(newName(one.path));
    if (found) found.before = one;
    else pairs.set(newName(one.path), { name: one.name, holder: one.held_by === null ? null : newName(one.held_by), before: one, after: null });
  }
  return pairs;
}

/**
 * Build the tree of how the objects of two audits differ: each below the object that holds it now, or held it before; a
 * new one that no other new one holds, below the library that it came with.
 */
export function objectChangeTree(old: LedgerAnswer, now: LedgerAnswer, diff: DiffAnswer): Tree {
  const pairs = pairsByPath(old, now, renamedOwners(diff));
  const [paths, rows] = [[...pairs.keys()], [...pairs.values()]];
  const cameWith = new Map(table(diff.owner_changes).rows().filter((one) => one.old_owner === null).map((one) => [one.owner, one.came_with]));
  const holders = rows.map(({ holder }, row) => (holder !== null && cameWith.has(holder) ? holder : cameWith.get(paths[row]) ?? holder));
  const tree = new Tree();
  const rowOf = [-1];
  tree.add(-1, "[all objects]");
  const delta = (row: number, key: "own_bytes" | "retained_bytes") => (rows[row].after?.[key] ?? 0) - (rows[row].before?.[key] ?? 0);
  addNested(paths, holders, (parent, row) => {
    const name = printable(shortened(rows[row].name || paths[row]));
    const node = tree.add(parent, name, printable(paths[row]), changeColour(delta(row, "own_bytes")));
    rowOf[node] = row;
    return node;
  });
  sums(tree, rowOf.map((row) => (row < 0 ? null : Math.abs(delta(row, "own_bytes")))))
    .forEach((area, node) => (tree.areas[node] = area ?? 0));
  const side = (which: "before" | "after") => {
    const whole = rows.reduce((sum, one) => sum + (one[which]?.own_bytes ?? 0), 0);
    return (node: number): number | null => (rowOf[node] < 0 ? whole : rows[rowOf[node]][which]?.own_bytes ?? null);
  };
  const [before, after] = [side("before"), side("after")];
  const change = (node: number) => (after(node) ?? 0) - (before(node) ?? 0);
  const total = change(0);
  const retained = (node: number) => (rowOf[node] < 0 ? total : delta(rowOf[node], "retained_bytes"));
  tree.colours[0] = changeColour(total);
  const what = (node: number) => {
    const one = rowOf[node] < 0 ? null : rows[rowOf[node]];
    return !one || (one.before && one.after) ? "" : one.after ? "new" : "gone";
  };
  tree.columns = [
    column("change", "Change", change, formatChange, true),
    column("aside", "Retained", retained, formatChange, true),
    column("before", "Before", before, cell),
    column("after", "After", after, cell),
    column("status", "What", what, String),
  ];
  return tree;
}

// The confidence with which each path is unused; that of the first finding that names it.
function unusedPaths(audit: LedgerAnswer): Map<string, string> {
  const unused = new Map<string, string>();
  for (const one of table(audit.findings).rows()) {
    if (one.rule !== "unused-library") continue;
    for (const path of [...one.leaves, one.subject]) {
      if (!unused.has(path)) unused.set(path, one.confidence);
    }
  }
  return unused;
}

/** Build the tree of objects: below each the objects that would leave the process with it. */
export function objectTree(audit: LedgerAnswer): Tree {
  const rows = table(audit.objects);
  const [paths, names, heldBy] = rows.columns("path", "name", "held_by");
  const [own, retained, tls] = rows.columns("own_bytes", "retained_bytes", "tls_bytes");
  const unused = unusedPaths(audit);
  const tree = new Tree();
  const rowOf = [-1];
  tree.add(-1, "[all objects]");
  addNested(paths, heldBy, (parent, row) => {
    const isUnused = unused.has(paths[row]);
    const name = printable(shortened(names[row] || paths[row]));
    const node = tree.add(parent, isUnused ? `${name} (unused)` : name, printable(paths[row]), isUnused ? UNUSED : USED);
    rowOf[node] = row;
    return node;
  });
  // The area of a node is its own bytes and those of the nodes below it.
  sums(tree, rowOf.map((row) => (row < 0 ? null : own[row]))).forEach((area, node) => (tree.areas[node] = area ?? 0));
  const of = (values: number[]) => (node: number) => (rowOf[node] < 0 ? tree.areas[node] : values[rowOf[node]]);
  const tlsOf = (node: number) => (rowOf[node] < 0 ? null : tls[rowOf[node]]);
  const unusedOf = (node: number) => (rowOf[node] < 0 ? "" : unused.get(paths[rowOf[node]]) ?? "");
  tree.sortedBy = 1;
  tree.columns = [
    column("own", "Own", of(own), cell),
    column("retained", "Retained", of(retained), cell),
    column("tls", "Per thread", tlsOf, cell),
    column("unused", "Unused", unusedOf, String),
  ];
  return tree;
}

/** Make the section on objects, and what would leave with each; null where no objects are known. */
export function librariesSection(audit: LedgerAnswer, { store }: Page): HTMLElement | null {
  const objects = table(audit.objects);
  if (!objects.size) return null;
  const view = el("div");
  const order = choice(store, "objects", "Order of objects", [["held", "Who holds whom"], ["needs", "Who needs whom"]] as const);
  store.remake(["objects"], () => fill(view, ...(order.value === "held"
    ? [el("p", {}, "Below each object are the objects that only it brings in."),
      treeView(store, "libraries", objectTree(audit), "Objects", [[USED, "used"], [UNUSED, "unused, or leaves with what is"]])]
    : [el("p", {}, "Below each object are those that it needs, with the number of symbols that it uses of them. The needs of an object stand below its first row only; other rows are marked `repeated`."),
      treeView(store, "libraries", needTree(audit), "Needs", [], false)])));
  return section("libraries", "Objects, and what would leave with each",
    objects.column("needs").some((one) => one !== null)
      ? el("div", { class: "tools" }, order.element) : null,
    view);
}

/** Make the section on how the objects of two audits differ; null where they are not known of both. */
export function objectChangesSection(diff: DiffAnswer, old: LedgerAnswer, now: LedgerAnswer, { store }: Page): HTMLElement | null {
  if (!table(old.objects).size || !table(now.objects).size) return null;
  return section("libraries", "Objects that changed",
    el("p", {}, "Each is below the object that holds it, or held it; new ones are below the library that they came with. Retained is the change of an object and all that it holds."),
    treeView(store, "libraries", objectChangeTree(old, now, diff), "Objects before and after", [[GROWN, "grew"], [SHRUNK, "shrank"]]));
}
