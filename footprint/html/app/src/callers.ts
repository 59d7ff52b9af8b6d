// Which functions asked for the memory of a chosen moment.

import { type Amount, setAmounts } from "./amounts";
import { type Choice, choice } from "./choice";
import { colourOf } from "./colours";
import type { Moment } from "./data";
import { type Child, el, fill, section } from "./dom";
import { around, functionsOf } from "./functions";
import { callTree, shareTree } from "./functiontrees";
import { growthTree } from "./growth";
import { chosenMoments, momentLists, momentName } from "./momentchoice";
import { printable, shortened } from "./names";
import type { Profile } from "./profile";
import type { Store } from "./store";
import { table } from "./table";
import type { Tree } from "./tree";
import { treeView } from "./view";

/** The functions in the list of those whose callers can be shown. */
const MOST_FUNCTIONS = 300;

/** Make the section on which functions asked for the memory of the chosen moment. */
export function callersSection(profile: Profile, amount: Amount, store: Store): HTMLElement {
  const made = section("ledger", "");
  const by = choice(store, "calls", "Add up by", [["functions", "By object and function"], ["calls", "By calls, main first"], ["around", "Callers and callees"]] as const);
  store.remake(["moment", "before", "calls", "function"], () => {
    const chosen = chosenMoments(profile, store);
    const { current, before } = chosen;
    if (!current) {
      fill(made, el("h2", {}, "Who asked for it"), el("p", { class: "empty" }, "No call tree could be read: who asked for it is not known."));
      return;
    }
    const nameOf = (one: Moment) => momentName(profile, one);
    const isAround = !before && by.value === "around";
    const title = before ? `What grew from ${nameOf(before)} to ${nameOf(current)}`
      : `${isAround ? "Callers and callees" : "Who asked for it"}, ${nameOf(current)}`;
    fill(made, el("h2", {}, title), el("div", { class: "tools" }, ...momentLists(profile, store, amount, chosen), !before && by.element),
      ...(isAround ? aroundViews(current, amount, store) : [momentView(current, before, by, amount, store)]));
  });
  return made;
}

function momentView(current: Moment, before: Moment | null, by: Choice<string>, amount: Amount, store: Store): HTMLElement {
  const { tree, legend } = before ? growthTree(table(before.shares).rows(), table(current.shares).rows(), amount)
    : by.value === "calls" ? callTree(table(current.calls), current.bytes, amount) : shareTree(table(current.shares), amount);
  return tree.size > 1 ? treeView(store, "ledger", tree, before ? "What grew" : "Who asked for it", legend)
    : el("p", { class: "empty" }, before ? "No function has another amount." : "Nothing was in use then.");
}

// Who calls the chosen function, and whom it calls.
function aroundViews(moment: Moment, amount: Amount, store: Store): Child[] {
  const functions = functionsOf(moment).slice(0, MOST_FUNCTIONS);
  const chosen = functions.find((one) => one.key === store.get("function")) ?? functions[0];
  const select = el("select", { id: "function", onchange: () => store.set("function", functions[select.selectedIndex].key) },
    ...functions.map((one) => el("option", { selected: one === chosen }, `${shortened(printable(one.name), 80)}: ${amount(one.bytes)}`)));
  const trees = chosen ? around(moment, chosen.key) : null;
  const shown = (tree: Tree, name: string, label: string) => {
    setAmounts(tree, [...tree.areas], tree.areas.map(() => null), amount);
    tree.colours.fill(colourOf("heap"));
    tree.columns.pop();
    return [el("h3", {}, label), tree.size > 1 ? treeView(store, name, tree, label, []) : el("p", { class: "empty" }, "None.")];
  };
  return [el("div", { class: "tools" }, el("label", { for: "function" }, "Function"), select),
    ...(trees ? [...shown(trees.callers, "callers", "Who calls it"), ...shown(trees.callees, "callees", "Whom it calls")] : [])];
}
