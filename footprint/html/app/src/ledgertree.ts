// The tree of a ledger, its rows with how each is known.

import type { LedgerAnswer } from "./data";
import { EVIDENCE } from "./evidence";
import { type Grouping, groupOf, isVirtual, type Shown, shownRows } from "./grouping";
import { cell } from "./kinds";
import { presort } from "./roworder";
import { nodeSums, type RowTree, rowTree, type TreeOptions } from "./rowtree";
import { Tree } from "./tree";
import { column, shareColumn } from "./treecolumns";
import type { Evidence } from "./types";
import { grouped } from "./units";

export function* sortedTree(audit: LedgerAnswer, by: Grouping, more: TreeOptions["more"]): Generator<void, Tree> {
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
