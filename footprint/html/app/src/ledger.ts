// The section on where the memory is, by owner, kind, section, mapping or finding.

import { choice } from "./choice";
import { type LedgerAnswer } from "./data";
import { el, fill, section } from "./dom";
import { GROUPINGS, isVirtual } from "./grouping";
import { sortedTree } from "./ledgertree";
import { kindLegend } from "./legend";
import type { Page } from "./page";
import type { TreeOptions } from "./rowtree";
import { table } from "./table";
import { treeView } from "./view";

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
  return section("ledger", title, el("div", { class: "tools grouping" }, el("span", {}, "Group by"), by.element), view,
    "processes" in audit && el("p", { class: "small" }, "Mappings are those of one process: its own audit lists them."));
}
