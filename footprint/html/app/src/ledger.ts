// The trees of an audit: its ledger by owner, section and symbol; what changed in it; its objects by who holds them.

import { table, type Table } from "./data";
import { printable, shortOwners, shortened } from "./names";
import { type Column, Tree, sums } from "./tree";
import { formatBytes, formatChange, grouped, percent } from "./units";

export const KINDS = [
  "several", "data", "bss", "relro", "text", "tls", "file", "heap", "stack", "anonymous", "shared", "kernel",
];
/** The colours of a change. */
export const GROWN = 12;
export const SHRUNK = 13;
export const SAME = 0;
export const UNUSED = 14;
export const USED = 4;

const EVIDENCE = ["measured", "derived", "predicted", "estimated", "virtual"];

export function weakest(evidence: Iterable<string>): string {
  let found = 0;
  for (const one of evidence) found = Math.max(found, EVIDENCE.indexOf(one));
  return EVIDENCE[found];
}

/** Write a size for a table: none is a dash, unknown is empty. */
export function cell(size: number | null): string {
  return size === null ? "" : size === 0 ? "-" : formatBytes(size);
}

interface Grouped {
  tree: Tree;
  /** Of each node the rows below it: one for a leaf. */
  rowOf: number[];
}

/** Put rows into a tree of owners, sections and symbols; a group of one that has no name of its own is that one. */
function byOwner(rows: Table, order: (row: number) => number, nameOf = (owner: string) => owner): Grouped {
  const owners = rows.column<string>("owner").map(nameOf);
  const sections = rows.column<string | null>("section");
  const symbols = rows.column<string | null>("symbol");
  const names = rows.column<string | null>("name");
  const kinds = rows.column<string>("kind");
  const groups = new Map<string, Map<string | null, number[]>>();
  for (let row = 0; row < rows.size; row += 1) {
    let within = groups.get(owners[row]);
    if (!within) groups.set(owners[row], (within = new Map()));
    const section = sections[row];
    const found = within.get(section);
    if (found) found.push(row);
    else within.set(section, [row]);
  }
  const tree = new Tree();
  const rowOf = [-1];
  const short = shortOwners(groups.keys());
  const add = (parent: number, name: string, title: string | null, row: number) => {
    const node = tree.add(parent, shortened(printable(name)), title === null ? null : printable(title),
      row < 0 ? 0 : Math.max(0, KINDS.indexOf(kinds[row])));
    rowOf[node] = row;
    return node;
  };
  tree.add(-1, "[total]");
  for (const [owner, within] of groups) {
    const only = within.size === 1 ? [...within.values()][0] : null;
    const name = short(owner);
    const title = name === owner ? null : owner;
    if (only?.length === 1 && symbols[only[0]] === null) {
      add(0, names[only[0]] ? `${name} ${names[only[0]]}` : name, title, only[0]);
      continue;
    }
    const ownerNode = add(0, name, title, -1);
    for (const [section, found] of within) {
      if (section === null) {
        // No section: it is a part of the owner itself.
        for (const row of found) add(ownerNode, names[row] ?? symbols[row] ?? `[${kinds[row]}]`, symbols[row], row);
        continue;
      }
      if (found.length === 1 && symbols[found[0]] === null) {
        add(ownerNode, names[found[0]] ? `${section} ${names[found[0]]}` : section, null, found[0]);
        continue;
      }
      const sectionNode = add(ownerNode, section, null, -1);
      for (const row of found) {
        const shown = names[row] ?? symbols[row] ?? `[${kinds[row]}]`;
        add(sectionNode, shown, symbols[row] === null || symbols[row] === shown ? null : symbols[row], row);
      }
    }
  }
  const own = rowOf.map((row) => (row < 0 ? null : order(row)));
  sums(tree, own).forEach((area, node) => (tree.areas[node] = area ?? 0));
  colourGroups(tree);
  return { tree, rowOf };
}

// A group has the colour of what most of it is.
function colourGroups(tree: Tree): void {
  const largest = new Array<number>(tree.size).fill(-1);
  for (let node = tree.size - 1; node > 0; node -= 1) {
    const parent = tree.parents[node];
    if (tree.areas[node] > largest[parent]) {
      largest[parent] = tree.areas[node];
      tree.colours[parent] = tree.colours[node];
    }
  }
}

function column(rows: Table, grouping: Grouped, key: string): (number | null)[] {
  const values = rows.column<number | null>(key);
  return sums(grouping.tree, grouping.rowOf.map((row) => (row < 0 ? null : values[row])));
}

/** Give the private bytes of each owner. */
export function heldByOwner(audit: any): Map<string, number> {
  const rows = table(audit.ledger);
  const bytes = rows.column<number | null>("bytes");
  const found = new Map<string, number>();
  rows.column<string>("owner").forEach((owner, row) => found.set(owner, (found.get(owner) ?? 0) + (bytes[row] ?? 0)));
  return found;
}

/** Tell whether only virtual sizes are known of an audit. */
export function isVirtual(audit: any): boolean {
  return audit.totals.private_bytes === null;
}

/** Make the tree of a ledger: private bytes, or where those are not known the mapped writable ones. */
export function ledgerTree(audit: any): Tree {
  const rows = table(audit.ledger);
  const virtual = isVirtual(audit);
  const isWritable = rows.column<boolean>("is_writable");
  const mapped = rows.column<number>("mapped_bytes");
  const bytes = rows.column<number | null>("bytes");
  const own = (row: number) => (virtual ? (isWritable[row] ? mapped[row] : 0) : bytes[row] ?? 0);
  const grouping = byOwner(rows, own);
  const { tree, rowOf } = grouping;
  const total = tree.areas[0];
  const mappedSums = column(rows, grouping, "mapped_bytes");
  const pages = rows.column<number | null>("pages");
  const evidence = evidenceOf(rows, grouping);
  const attribution = rows.column<string>("attribution");
  const rowEvidence = rows.column<string>("evidence");
  rowOf.forEach((row, node) => {
    if (row >= 0) {
      tree.hatched[node] =
        rowEvidence[row] === "estimated" || attribution[row] === "shape" || attribution[row] === "adjacency";
    }
  });
  hatchGroups(tree);
  const pageBytes: number = audit.target.page_bytes;
  const pagesOf = (node: number): number | null => {
    if (virtual) return null;
    const row = rowOf[node];
    if (row >= 0) return pages[row];
    // Of a group that shares no page with another: symbols of one page each count it.
    return tree.areas[node] % pageBytes === 0 && tree.parents[node] === 0 ? tree.areas[node] / pageBytes : null;
  };
  tree.columns = [
    {
      key: "bytes", label: virtual ? "Writable" : "Bytes",
      value: (node) => tree.areas[node], text: (node) => cell(tree.areas[node]),
    },
    {
      key: "share", label: "Share", value: (node) => (total ? tree.areas[node] / total : null),
      text: (node) => percent(tree.areas[node], total), share: (node) => (total ? tree.areas[node] / total : 0),
    },
    {
      key: "pages", label: "Pages", value: pagesOf,
      text: (node) => { const found = pagesOf(node); return found === null ? "" : found === 0 ? "-" : grouped(found); },
    },
    { key: "mapped", label: "Mapped", value: (node) => mappedSums[node], text: (node) => cell(mappedSums[node]) },
    evidenceColumn(evidence),
  ];
  return tree;
}

function evidenceColumn(evidence: number[]): Column {
  return {
    key: "evidence", label: "Evidence", isEvidence: true,
    value: (node) => EVIDENCE[evidence[node]] ?? null, text: (node) => EVIDENCE[evidence[node]] ?? "",
  };
}

function evidenceOf(rows: Table, { tree, rowOf }: Grouped): number[] {
  const told = rows.column<string>("evidence");
  const found = rowOf.map((row) => (row < 0 ? 0 : EVIDENCE.indexOf(told[row])));
  for (let node = tree.size - 1; node > 0; node -= 1) {
    const parent = tree.parents[node];
    // What is nothing weakens nothing.
    if (tree.areas[node]) found[parent] = Math.max(found[parent], found[node]);
  }
  return found;
}

// A group is hatched where most of it is.
function hatchGroups(tree: Tree): void {
  const hatched = tree.areas.map((area, node) => (tree.hatched[node] ? area : 0));
  for (let node = tree.size - 1; node > 0; node -= 1) hatched[tree.parents[node]] += hatched[node];
  for (let node = 0; node < tree.size; node += 1) {
    if (tree.children[node].length) tree.hatched[node] = hatched[node] * 2 > tree.areas[node];
  }
}

/** Give what owners are called now that had another name before. */
export function renamedOwners(diff: any): Map<string, string> {
  const found = new Map<string, string>();
  for (const one of table(diff.owner_changes).rows()) {
    if (one.old_owner !== null && !one.is_gone) found.set(one.old_owner, one.owner);
  }
  return found;
}

/** Make the tree of what changed: only rows that differ are in it, as large as they changed. */
export function changeTree(diff: any): Tree {
  const rows = table(diff.diff);
  const delta = rows.column<number>("delta_bytes");
  // What is gone has the name that its owner had: it stands with what that is called now.
  const renamed = renamedOwners(diff);
  const grouping = byOwner(rows, (row) => Math.abs(delta[row]), (owner) => renamed.get(owner) ?? owner);
  const { tree, rowOf } = grouping;
  // What is as before is in none of its figures.
  tree.names[0] = "[what differs]";
  // The picture adds up what grew and what shrank.
  tree.amount = (area) => `${formatBytes(area)}, grown and shrunk,`;
  const status = rows.column<string>("status");
  const writableOr = (key: string, writableKey: string) => {
    const bytes = rows.column<number | null>(key);
    const writable = rows.column<number>(writableKey);
    const oldBytes = rows.column<number | null>("old_bytes");
    const newBytes = rows.column<number | null>("new_bytes");
    return sums(tree, rowOf.map((row) =>
      row < 0 ? null : oldBytes[row] === null || newBytes[row] === null ? writable[row] : bytes[row]));
  };
  const before = writableOr("old_bytes", "old_writable_bytes");
  const after = writableOr("new_bytes", "new_writable_bytes");
  const change = sums(tree, rowOf.map((row) => (row < 0 ? null : delta[row])));
  for (let node = 0; node < tree.size; node += 1) {
    const value = change[node] ?? 0;
    tree.colours[node] = value > 0 ? GROWN : value < 0 ? SHRUNK : SAME;
  }
  const statusOf = (node: number) => (rowOf[node] < 0 ? "" : status[rowOf[node]]);
  tree.columns = [
    {
      key: "change", label: "Change", value: (node) => change[node], order: (node) => Math.abs(change[node] ?? 0),
      text: (node) => formatChange(change[node] ?? 0),
    },
    { key: "before", label: "Before", value: (node) => before[node], text: (node) => cell(before[node]) },
    { key: "after", label: "After", value: (node) => after[node], text: (node) => cell(after[node]) },
    { key: "status", label: "What", value: statusOf, text: statusOf },
  ];
  return tree;
}

/**
 * Make the tree of who needs whom, a row for each need. What an object needs stands below the first of its rows only:
 * with all that it leads to, it could be there without end.
 */
export function needTree(audit: any): Tree {
  const rows = table(audit.objects);
  const [paths, names] = [rows.column<string>("path"), rows.column<string>("name")];
  const [own, retained] = [rows.column<number>("own_bytes"), rows.column<number>("retained_bytes")];
  const needs = rows.column<{ path: string; symbol_count: number | null }[] | null>("needs");
  const rowOfPath = new Map(paths.map((path, row) => [path, row] as const));
  const tree = new Tree();
  const rowOf = [-1];
  const symbols: (number | null)[] = [null];
  const marks = [""];
  const seen = new Set<number>();
  tree.add(-1, "[all objects]");
  const wait: number[] = [];
  const add = (parent: number, row: number, count: number | null, mark: string) => {
    const node = tree.add(parent, printable(shortened(names[row] || paths[row])), printable(paths[row]), mark === "unused" ? UNUSED : USED);
    rowOf[node] = row;
    symbols[node] = count;
    marks[node] = mark;
    if (seen.has(row)) {
      if (needs[row]?.length) marks[node] = mark ? `${mark}, repeated` : "repeated";
    } else {
      seen.add(row);
      wait.push(node);
    }
  };
  const visit = () => {
    for (let place = 0; place < wait.length; place += 1) {
      for (const one of needs[rowOf[wait[place]]] ?? []) {
        const row = rowOfPath.get(one.path);
        if (row !== undefined) add(wait[place], row, one.symbol_count, one.symbol_count === null ? "stands in" : one.symbol_count ? "" : "unused");
      }
    }
    wait.length = 0;
  };
  const isNeeded = new Set(needs.flatMap((some, row) => (some ?? []).map((one) => rowOfPath.get(one.path)).filter((one) => one !== row)));
  // What nobody needs comes first; what need only each other is reached from nowhere, and shown at the top too.
  for (const wanted of [false, true]) {
    paths.forEach((_, row) => {
      if (seen.has(row) || isNeeded.has(row) !== wanted) return;
      add(0, row, null, "");
      visit();
    });
  }
  const of = (values: number[]) => (node: number) => (rowOf[node] < 0 ? null : values[rowOf[node]]);
  tree.sortedBy = -1;
  tree.columns = [
    { key: "aside", label: "Own", value: of(own), text: (node) => cell(of(own)(node)) },
    { key: "retained", label: "Retained", value: of(retained), text: (node) => cell(of(retained)(node)) },
    {
      key: "symbols", label: "Symbols", value: (node) => symbols[node],
      text: (node) => (symbols[node] === null ? "" : symbols[node] ? grouped(symbols[node]!) : "none"),
    },
    { key: "edge", label: "Need", value: (node) => marks[node], text: (node) => marks[node] },
  ];
  return tree;
}

/** Add objects below those that hold them, those that nobody holds below the root. */
function nested(paths: string[], heldBy: (string | null)[], add: (parent: number, row: number) => number): void {
  const below = new Map<string | null, number[]>();
  const known = new Set(paths);
  heldBy.forEach((holder, row) => {
    const key = holder !== null && known.has(holder) && holder !== paths[row] ? holder : null;
    const some = below.get(key);
    if (some) some.push(row);
    else below.set(key, [row]);
  });
  const seen = new Set<number>();
  // A saved audit may say that objects hold each other: those are reached from nowhere, and shown at the top.
  for (const start of [...(below.get(null) ?? []), ...paths.keys()]) {
    const wait: [number, number][] = [[0, start]];
    for (let place = 0; place < wait.length; place += 1) {
      const [parent, row] = wait[place];
      if (seen.has(row)) continue;
      seen.add(row);
      const node = add(parent, row);
      for (const one of below.get(paths[row]) ?? []) wait.push([node, one]);
    }
  }
}

/** Make the tree of how the objects of two audits differ: each below what holds it now, or held it before. */
export function objectChangeTree(old: any, now: any, renamed: Map<string, string>): Tree {
  const called = (path: string | null) => (path === null ? null : renamed.get(path) ?? path);
  interface Pair { name: string; holder: string | null; before: any; after: any }
  const pairs = new Map<string, Pair>();
  for (const one of table(now.objects).rows()) pairs.set(one.path, { name: one.name, holder: one.held_by, before: null, after: one });
  for (const one of table(old.objects).rows()) {
    const path = called(one.path)!;
    const found = pairs.get(path);
    if (found) found.before = one;
    else pairs.set(path, { name: one.name, holder: called(one.held_by), before: one, after: null });
  }
  const paths = [...pairs.keys()];
  const rows = [...pairs.values()];
  const tree = new Tree();
  const rowOf = [-1];
  tree.add(-1, "[all objects]");
  const delta = (row: number, key: string) => (rows[row].after?.[key] ?? 0) - (rows[row].before?.[key] ?? 0);
  nested(paths, rows.map((one) => one.holder), (parent, row) => {
    const change = delta(row, "own_bytes");
    const node = tree.add(parent, printable(shortened(rows[row].name || paths[row])), printable(paths[row]), change > 0 ? GROWN : change < 0 ? SHRUNK : SAME);
    rowOf[node] = row;
    return node;
  });
  const all = (value: (row: number) => number) => sums(tree, rowOf.map((row) => (row < 0 ? null : value(row))));
  all((row) => Math.abs(delta(row, "own_bytes"))).forEach((area, node) => (tree.areas[node] = area ?? 0));
  const side = (which: "before" | "after") => {
    const whole = rows.reduce((sum, one) => sum + (one[which]?.own_bytes ?? 0), 0);
    return (node: number): number | null => (rowOf[node] < 0 ? whole : rows[rowOf[node]][which]?.own_bytes ?? null);
  };
  const [before, after] = [side("before"), side("after")];
  const change = (node: number) => (after(node) ?? 0) - (before(node) ?? 0);
  const total = change(0);
  const retained = (node: number) => (rowOf[node] < 0 ? total : delta(rowOf[node], "retained_bytes"));
  tree.colours[0] = total > 0 ? GROWN : total < 0 ? SHRUNK : SAME;
  const what = (node: number) => {
    const one = rowOf[node] < 0 ? null : rows[rowOf[node]];
    return !one || (one.before && one.after) ? "" : one.after ? "new" : "gone";
  };
  tree.columns = [
    { key: "change", label: "Change", value: change, order: (node) => Math.abs(change(node)), text: (node) => formatChange(change(node)) },
    { key: "aside", label: "Retained", value: retained, order: (node) => Math.abs(retained(node)), text: (node) => formatChange(retained(node)) },
    { key: "before", label: "Before", value: before, text: (node) => cell(before(node)) },
    { key: "after", label: "After", value: after, text: (node) => cell(after(node)) },
    { key: "status", label: "What", value: what, text: what },
  ];
  return tree;
}

/** Make the tree of objects: below each those that would leave the process with it. */
export function objectTree(audit: any): { tree: Tree; nodeOf: Map<string, number> } {
  const rows = table(audit.objects);
  const paths = rows.column<string>("path");
  const names = rows.column<string>("name");
  const own = rows.column<number>("own_bytes");
  const retained = rows.column<number>("retained_bytes");
  const heldBy = rows.column<string | null>("held_by");
  const tls = rows.column<number>("tls_bytes");
  const findings = table(audit.findings);
  const rules = findings.column<string>("rule");
  const unused = new Map<string, string>();
  findings.column<string>("subject").forEach((subject, place) => {
    if (rules[place] !== "unused-library") return;
    const confidence = findings.column<string>("confidence")[place];
    for (const path of findings.column<string[]>("leaves")[place]) {
      if (!unused.has(path)) unused.set(path, confidence);
    }
    if (!unused.has(subject)) unused.set(subject, confidence);
  });
  const tree = new Tree();
  const rowOf = [-1];
  const nodeOf = new Map<string, number>();
  tree.add(-1, "[all objects]");
  nested(paths, heldBy, (parent, row) => {
    const isUnused = unused.has(paths[row]);
    const name = printable(shortened(names[row] || paths[row]));
    const node = tree.add(parent, isUnused ? `${name} (unused)` : name, printable(paths[row]), isUnused ? UNUSED : USED);
    rowOf[node] = row;
    nodeOf.set(paths[row], node);
    return node;
  });
  sums(tree, rowOf.map((row) => (row < 0 ? null : own[row]))).forEach((area, node) => (tree.areas[node] = area ?? 0));
  // Sums of nodes that have own bytes and children: `sums` adds the children to what stands there.
  const of = (values: number[]) => (node: number) => (rowOf[node] < 0 ? tree.areas[node] : values[rowOf[node]]);
  const tlsOf = (node: number) => (rowOf[node] < 0 ? null : tls[rowOf[node]]);
  const unusedOf = (node: number) => {
    const found = rowOf[node] < 0 ? undefined : unused.get(paths[rowOf[node]]);
    return found ?? "";
  };
  tree.sortedBy = 1;
  tree.columns = [
    { key: "own", label: "Own", value: of(own), text: (node) => cell(of(own)(node)) },
    { key: "retained", label: "Retained", value: of(retained), text: (node) => cell(of(retained)(node)) },
    { key: "tls", label: "Per thread", value: tlsOf, text: (node) => cell(tlsOf(node)) },
    { key: "unused", label: "Unused", value: unusedOf, text: unusedOf },
  ];
  return { tree, nodeOf };
}
