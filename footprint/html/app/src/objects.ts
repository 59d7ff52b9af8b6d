// The sections on objects: what would leave with each, who needs whom, and how those of two audits differ.

import { choice } from "./choice";
import { type LedgerAnswer } from "./data";
import { el, fill, section } from "./dom";
import { GROWN, SHRUNK, UNUSED, USED } from "./kinds";
import { needTree } from "./needtree";
import { objectChangeTree } from "./objectchange";
import { objectTree } from "./objecttree";
import type { Page } from "./page";
import { table } from "./table";
import type { DiffAnswer } from "./types";
import { treeView } from "./view";

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
