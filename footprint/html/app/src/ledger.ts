// The trees of a ledger: owner, section and symbol; and of its changes.

import { colourOf } from "./colours";
import { table, type LedgerAnswer, type Table } from "./data";
import { EVIDENCE } from "./evidence";
import { choice } from "./choice";
import { el, fill, section } from "./dom";
import { printable, shortOwners, shortened } from "./names";
import type { Page } from "./page";
import { presort } from "./rows";
import { runAtOnce } from "./scheduler";
import { column, shareColumn, sums, Tree } from "./tree";
import type { DiffAnswer, Evidence, FindingRow, MappingCost, Row } from "./types";
import { formatBytes, formatChange, grouped } from "./units";
import { kindLegend, treeView } from "./view";
import { KINDS } from "./words";

/** The number of nodes that are added between two yields. */
const STEP = 2000;
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

/** A tree of rows. */
interface RowTree {
  tree: Tree;
  /** The row of each leaf; -1 for a group. */
  rowOf: number[];
}

/** The columns that rows of a ledger and rows of changes have in common. */
type Named = Pick<Row, "owner" | "section" | "symbol" | "name" | "kind">;

/** The grouping of a ledger above its owners: the name of the group of a row. */
export type GroupOf = (row: number) => string;

// Put rows together by a key.
function together<K>(rows: number[], keyOf: (row: number) => K): Map<K, number[]> {
  const found = new Map<K, number[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const some = found.get(key);
    if (some) some.push(row);
    else found.set(key, [row]);
  }
  return found;
}

interface TreeOptions {
  /** Renames owners. */
  nameOf?: (owner: string) => string;
  /** Groups above the owners. */
  group?: GroupOf;
  /** Whether sections are left out, because the groups are sections. */
  hasNoSections?: boolean;
  /** Parts that no row has. */
  more?: { name: string; bytes: number }[];
}

/** Build a tree of owners, sections and symbols. A group with a single nameless row becomes one node. */
function* rowTree(
  rows: Pick<Table<Named>, "column" | "columns">, area: (row: number) => number, { nameOf = (owner) => owner, group, hasNoSections, more = [] }: TreeOptions = {},
): Generator<void, RowTree> {
  const [symbols, names, kinds, sections] = rows.columns("symbol", "name", "kind", "section");
  yield;
  const owners = rows.column("owner").map(nameOf);
  const tree = new Tree();
  const rowOf = [-1];
  const short = shortOwners(new Set(owners));
  const add = (parent: number, name: string, title: string | null, row: number) => {
    const node = tree.add(parent, shortened(printable(name)), title === null ? null : printable(title),
      row < 0 ? 0 : Math.max(0, KIND_NAMES.indexOf(kinds[row])));
    rowOf[node] = row;
    return node;
  };
  const addLeaves = function* (parent: number, found: number[]): Generator<void> {
    for (const row of found) {
      const name = names[row] ?? symbols[row] ?? `[${kinds[row]}]`;
      add(parent, name, symbols[row] === name ? null : symbols[row], row);
      if (tree.size % STEP === 0) yield;
    }
  };
  // A single nameless row stands for its whole group.
  const isWhole = (found: number[]) => found.length === 1 && symbols[found[0]] === null;
  const wholeName = (group: string, row: number) => (names[row] ? `${group} ${names[row]}` : group);
  const addSection = function* (parent: number, section: string | null, found: number[]): Generator<void> {
    // Rows without a section belong to the owner itself.
    if (section === null) yield* addLeaves(parent, found);
    else if (isWhole(found)) add(parent, wholeName(section, found[0]), null, found[0]);
    else yield* addLeaves(add(parent, section, null, -1), found);
  };
  const addOwners = function* (parent: number, all: number[]): Generator<void> {
    yield;
    for (const [owner, found] of together(all, (row) => owners[row])) {
      yield;
      const name = short(owner);
      const title = name === owner ? null : owner;
      if (isWhole(found)) {
        add(parent, wholeName(name, found[0]), title, found[0]);
        continue;
      }
      const node = add(parent, name, title, -1);
      for (const [section, some] of together(found, (row) => (hasNoSections ? null : sections[row]))) yield* addSection(node, section, some);
      yield;
    }
  };
  tree.add(-1, "[total]");
  const all = owners.map((_, row) => row);
  yield;
  if (!group) yield* addOwners(0, all);
  else for (const [name, found] of together(all, group)) yield* addOwners(add(0, name, null, -1), found);
  const own = rowOf.map((row) => (row < 0 ? null : area(row)));
  for (const { name, bytes } of more) {
    const node = add(0, name, null, -1);
    own[node] = bytes;
    tree.colours[node] = KIND_NAMES.indexOf("shared");
  }
  sums(tree, own).forEach((sum, node) => (tree.areas[node] = sum ?? 0));
  yield;
  colourGroups(tree);
  return { tree, rowOf };
}

// A group has the colour of its largest part.
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

// Add up the values of rows for all nodes.
function nodeSums({ tree, rowOf }: RowTree, value: (row: number) => number | null): (number | null)[] {
  return sums(tree, rowOf.map((row) => (row < 0 ? null : value(row))));
}

/** Return the private bytes of each owner. */
export function privateByOwner(audit: LedgerAnswer): Map<string, number> {
  const rows = table(audit.ledger);
  const bytes = rows.column("bytes");
  const found = new Map<string, number>();
  rows.column("owner").forEach((owner, row) => found.set(owner, (found.get(owner) ?? 0) + (bytes[row] ?? 0)));
  return found;
}

/** Return whether only the sizes of address space are known. */
export function isVirtual(audit: LedgerAnswer): boolean {
  return audit.totals.private_bytes === null;
}

const GROUPINGS = [["owner", "Owner"], ["kind", "Kind"], ["section", "Section"], ["mapping", "Mapping"], ["finding", "Finding"]] as const;
type Grouping = (typeof GROUPINGS)[number][0];

/** Make the section on where the memory is; `more` are parts of the cost that no row has. */
export function ledgerSection(audit: LedgerAnswer, { store }: Page, more: TreeOptions["more"] = []): HTMLElement {
  const title = isVirtual(audit) ? "Where the mapped writable memory is" : "Where the memory is";
  if (!table(audit.ledger).size) return section("ledger", title, el("p", { class: "empty" }, "The ledger is empty: no memory is known of it."));
  const has = { mapping: table(audit.mappings).size, finding: table(audit.findings).size };
  const by = choice(store, "by", "Group by", GROUPINGS.filter(([name]) => (name !== "mapping" && name !== "finding") || has[name]));
  const view = el("div");
  store.remake(["by"], (later) => {
    store.work(sortedTree(audit, by.value, more), view, (tree) => later(() => fill(view, treeView(store, "ledger", tree, title, kindLegend(tree)))));
  });
  return section("ledger", title, el("div", { class: "tools grouping" }, el("span", {}, "Group by"), by.element), view);
}

/** The rows that a picture shows. */
type Shown = Pick<Table<Row>, "column" | "columns">;

// Return the rows of a ledger; instead of those of an owner that is opened, its mappings. The kernel's have none.
function shownRows(audit: LedgerAnswer, isOpen: (owner: string) => boolean): Shown {
  const ledger = table(audit.ledger);
  const opened = table(audit.mappings).rows().filter((one) => isOpen(one.owner))
    .map((one): Partial<Row> => ({ ...one, name: mappingName(one), pages: Math.ceil((one.bytes ?? 0) / audit.target.page_bytes) }));
  if (!opened.length) return ledger;
  const [owners, kinds] = ledger.columns("owner", "kind");
  const kept = [...kinds.keys()].filter((row) => kinds[row] === "kernel" || !isOpen(owners[row]));
  const column = <K extends keyof Row>(key: K) => {
    const given = ledger.column(key);
    return [...opened.map((one) => (one[key] ?? null) as Row[K]), ...kept.map((row) => given[row])];
  };
  return { column, columns: (...keys) => keys.map(column) as never };
}

// Write what is known of a mapping beside its sizes.
function mappingName({ start_addr, end_addr, permissions, name, owner, has_guard, mapping_count, swapped_bytes }: MappingCost): string {
  return start_addr === null ? `[${grouped(mapping_count)} smaller mapping${mapping_count > 1 ? "s" : ""}]`
    : [`${start_addr.toString(16)}-${end_addr!.toString(16)} ${permissions}`, name !== owner && name, has_guard && "guard beside", swapped_bytes && `${formatBytes(swapped_bytes)} swapped`]
      .filter(Boolean).join(", ");
}

// Return the group of a row; none for the owners themselves, and for their mappings.
function groupOf(audit: LedgerAnswer, rows: Shown, by: Grouping): GroupOf | undefined {
  const [kinds, sections] = rows.columns("kind", "section");
  return by === "kind" ? (row) => kinds[row]
    : by === "section" ? (row) => sections[row] ?? "[no section]"
    : by === "finding" ? findingOf(audit, rows) : undefined;
}

// Return the finding that each row belongs to: the one that saves most of those that name its owner or its symbol.
function findingOf(audit: LedgerAnswer, rows: Shown): GroupOf {
  const [owners, symbols, names, relocated] = rows.columns("owner", "symbol", "name", "relocated_bytes");
  const byOwner = new Map<string, FindingRow[]>();
  for (const one of table(audit.findings).rows().filter((each) => each.saving_bytes > 0)) {
    for (const owner of new Set([...one.leaves, one.object ?? "", one.subject])) {
      if (owner) byOwner.set(owner, [...(byOwner.get(owner) ?? []), one]);
    }
  }
  const about = (one: FindingRow, row: number) => one.leaves.includes(owners[row]) || one.subject === symbols[row] || one.subject === names[row]
    || (one.rule === "relocated-tables" && (relocated[row] ?? 0) > 0);
  return (row) => byOwner.get(owners[row])?.filter((one) => about(one, row))
    .reduce<FindingRow | null>((best, one) => (best && best.saving_bytes >= one.saving_bytes ? best : one), null)?.rule ?? "[no finding]";
}

function* sortedTree(audit: LedgerAnswer, by: Grouping, more: TreeOptions["more"]): Generator<void, Tree> {
  const tree = yield* ledgerTree(audit, by, more);
  yield* presort(tree);
  return tree;
}

/** Build the tree of a ledger: private bytes, or mapped writable bytes where private bytes are not known. */
function* ledgerTree(audit: LedgerAnswer, by: Grouping, more: TreeOptions["more"]): Generator<void, Tree> {
  // A profile splits the heap, and with it the rows of some mappings.
  const rows = shownRows(audit, (owner) => by === "mapping" || (owner === "[anonymous]" && !audit.heap_account));
  const virtual = isVirtual(audit);
  const [isWritable, mapped, bytes, pages] = rows.columns("is_writable", "mapped_bytes", "bytes", "pages");
  const built = yield* rowTree(rows, (row) => (virtual ? (isWritable[row] ? mapped[row] : 0) : bytes[row] ?? 0),
    { group: groupOf(audit, rows, by), hasNoSections: by === "section", more });
  const { tree, rowOf } = built;
  yield;
  const mappedSums = nodeSums(built, (row) => mapped[row]);
  const evidence = nodeEvidence(rows.column("evidence"), built);
  yield;
  hatch(rows, built);
  const pageBytes = audit.target.page_bytes;
  const pagesOf = (node: number): number | null => {
    if (virtual) return null;
    if (rowOf[node] >= 0) return pages[rowOf[node]];
    // Several symbols count the same page, so the pages of a group are known only where it fills whole pages.
    return tree.areas[node] % pageBytes === 0 && tree.parents[node] === 0 ? tree.areas[node] / pageBytes : null;
  };
  const evidenceOf = (node: number) => EVIDENCE[evidence[node]] ?? "";
  tree.columns = [
    column("bytes", virtual ? "Writable" : "Bytes", (node) => tree.areas[node], cell),
    shareColumn(tree, tree.areas[0]),
    column("pages", "Pages", pagesOf, (count) => (count === null ? "" : count === 0 ? "-" : grouped(count))),
    column("mapped", "Mapped", (node) => mappedSums[node], cell),
    { key: "evidence", label: "Evidence", isEvidence: true, value: (node) => evidenceOf(node) || null, text: evidenceOf },
  ];
  return tree;
}

// The weakest evidence of each node; parts of size zero do not count.
function nodeEvidence(words: Evidence[], { tree, rowOf }: RowTree): number[] {
  const found = rowOf.map((row) => (row < 0 ? 0 : EVIDENCE.indexOf(words[row])));
  for (let node = tree.size - 1; node > 0; node -= 1) {
    const parent = tree.parents[node];
    if (tree.areas[node]) found[parent] = Math.max(found[parent], found[node]);
  }
  return found;
}

// Hatch the rows that are estimated or whose owner is assumed, and the groups that consist mostly of such rows.
function hatch(rows: Shown, { tree, rowOf }: RowTree): void {
  const [evidence, attribution] = rows.columns("evidence", "attribution");
  const areas = rowOf.map((row, node) => {
    tree.hatched[node] = row >= 0 && (evidence[row] === "estimated" || attribution[row] === "shape" || attribution[row] === "adjacency");
    return tree.hatched[node] ? tree.areas[node] : 0;
  });
  for (let node = tree.size - 1; node > 0; node -= 1) areas[tree.parents[node]] += areas[node];
  for (let node = 0; node < tree.size; node += 1) {
    if (tree.children[node].length) tree.hatched[node] = areas[node] * 2 > tree.areas[node];
  }
}

/** Return the new names of the owners that have another name than before. */
export function renamedOwners(diff: DiffAnswer): Map<string, string> {
  const found = new Map<string, string>();
  for (const one of table(diff.owner_changes).rows()) {
    if (one.old_owner !== null && !one.is_gone) found.set(one.old_owner, one.owner);
  }
  return found;
}

/** Build the tree of the rows that differ; the area of a row is the size of its change. */
export function changeTree(diff: DiffAnswer): Tree {
  const rows = table(diff.diff);
  const delta = rows.column("delta_bytes");
  // A row that is gone has the old name of its owner: it is shown below the new name.
  const renamed = renamedOwners(diff);
  const built = runAtOnce(rowTree(rows, (row) => Math.abs(delta[row]), { nameOf: (owner) => renamed.get(owner) ?? owner }));
  const { tree, rowOf } = built;
  tree.names[0] = "[what differs]";
  tree.amount = (area) => `${formatBytes(area)}, grown and shrunk,`;
  const status = rows.column("status");
  const [old, now] = rows.columns("old_bytes", "new_bytes");
  const [oldWritable, newWritable] = rows.columns("old_writable_bytes", "new_writable_bytes");
  const isKnown = (row: number) => old[row] !== null && now[row] !== null;
  const before = nodeSums(built, (row) => (isKnown(row) ? old[row] : oldWritable[row]));
  const after = nodeSums(built, (row) => (isKnown(row) ? now[row] : newWritable[row]));
  const change = nodeSums(built, (row) => delta[row]);
  for (let node = 0; node < tree.size; node += 1) tree.colours[node] = changeColour(change[node] ?? 0);
  const statusOf = (node: number) => (rowOf[node] < 0 ? "" : status[rowOf[node]]);
  tree.columns = [
    column<number>("change", "Change", (node) => change[node] ?? 0, formatChange, true),
    column("before", "Before", (node) => before[node], cell),
    column("after", "After", (node) => after[node], cell),
    column("status", "What", statusOf, String),
  ];
  return tree;
}
