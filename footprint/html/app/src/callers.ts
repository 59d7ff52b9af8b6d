// Which functions asked for the memory of a chosen moment.

import { type Choice, choice } from "./choice";
import { colourOf } from "./colours";
import { type Moment, table } from "./data";
import { el, fill, section } from "./dom";
import { around, functionsOf } from "./functions";
import { type Amount, callTree, setAmounts, shareTree } from "./functiontrees";
import { growthTree } from "./growth";
import type { Profile } from "./profile";
import { printable, shortened } from "./names";
import type { Store } from "./store";
import { formatTime } from "./timeline";
import { Tree } from "./tree";
import { treeView } from "./view";

/** The functions in the list of those whose callers can be shown. */
const MOST_FUNCTIONS = 300;

/** The section on which functions asked for the memory of a chosen moment. */
export class Callers {
  readonly element = section("ledger", "");
  readonly #by: Choice<"calls" | "functions" | "around">;
  readonly #select: HTMLSelectElement;
  readonly #beforeSelect: HTMLSelectElement;

  constructor(private readonly profile: Profile, private readonly amount: Amount, private readonly store: Store) {
    const { moments } = profile;
    this.#by = choice(store, "calls", "Add up by", [["functions", "By object and function"], ["calls", "By calls, main first"], ["around", "Callers and callees"]] as const);
    const choose = (name: string, one: Moment | undefined) => store.set(name, one ? String(one.moment) : "none");
    this.#select = el("select", {
      id: "moment", "aria-label": "Moment", onchange: () => choose("moment", moments[this.#select.selectedIndex]),
    }, ...moments.map((one, place) => el("option", { value: place }, `${this.#nameOf(one.moment)}: ${amount(one.bytes)}`)));
    this.#beforeSelect = el("select", {
      id: "before", "aria-label": "Compared with", onchange: () => choose("before", moments[this.#beforeSelect.selectedIndex - 1]),
    }, el("option", { value: -1 }, "no other moment"), ...moments.map((one, place) => el("option", { value: place }, this.#nameOf(one.moment))));
    store.remake(["moment", "before", "calls", "function"], () => this.#draw());
  }

  /** Call a listener with the chosen moment and the one before, now and after each change. */
  watch(listener: (moment: number | string | null, before: number | string | null) => void): void {
    const tell = () => listener(this.#current?.moment ?? null, this.#before?.moment ?? null);
    for (const name of ["moment", "before"]) this.store.watch(name, tell);
    tell();
  }

  get #current(): Moment | null {
    const { row, moments, named } = this.profile;
    const last = named.length > 1 ? named[named.length - 1] : row.snapshot;
    return this.#at(this.store.get("moment")) ?? this.#at(last) ?? moments[0] ?? null;
  }

  get #before(): Moment | null {
    const { named } = this.profile;
    return this.#at(this.store.get("before") ?? (named.length > 1 ? named[0] : null));
  }

  #at(moment: string | number | null): Moment | null {
    return this.profile.moments.find((one) => String(one.moment) === String(moment)) ?? null;
  }

  #nameOf(moment: number | string): string {
    if (typeof moment === "string") return `${printable(moment)} over the whole run`;
    const one = this.profile.snapshots.find((snapshot) => snapshot.number === moment);
    const time = one && one.time !== null ? ` at ${formatTime(one.time, this.profile.row.time_unit ?? "")}` : "";
    return `snapshot ${moment}${time}${one?.is_peak ? ", the peak" : ""}`;
  }

  #draw(): void {
    const { amount, store } = this;
    const [current, before] = [this.#current, this.#before];
    if (!current) {
      fill(this.element, el("h2", {}, "Who asked for it"), el("p", { class: "empty" }, "No call tree could be read: who asked for it is not known."));
      return;
    }
    const { moments } = this.profile;
    this.#select.selectedIndex = moments.indexOf(current);
    this.#beforeSelect.selectedIndex = before ? moments.indexOf(before) + 1 : 0;
    if (!before && this.#by.value === "around") return this.#drawAround(current);
    const { tree, legend } = before ? growthTree(table(before.shares).rows(), table(current.shares).rows(), amount)
      : this.#by.value === "calls" ? callTree(table(current.calls), current.bytes, amount) : shareTree(table(current.shares), amount);
    const title = before ? `What grew from ${this.#nameOf(before.moment)} to ${this.#nameOf(current.moment)}`
      : `Who asked for it, ${this.#nameOf(current.moment)}`;
    fill(this.element, el("h2", {}, title), this.#tools(before),
      tree.size > 1 ? treeView(store, "ledger", tree, before ? "What grew" : "Who asked for it", legend)
        : el("p", { class: "empty" }, before ? "No function has another amount." : "Nothing was in use then."));
  }

  // Who calls the chosen function, and whom it calls.
  #drawAround(moment: Moment): void {
    const { amount, store } = this;
    const functions = functionsOf(moment).slice(0, MOST_FUNCTIONS);
    const chosen = functions.find((one) => one.key === store.get("function")) ?? functions[0];
    const select = el("select", { id: "function", onchange: () => store.set("function", functions[select.selectedIndex].key) },
      ...functions.map((one) => el("option", { selected: one === chosen }, `${shortened(printable(one.name), 80)}: ${amount(one.bytes)}`)));
    const trees = chosen ? around(moment, chosen.key) : null;
    const shown = (tree: Tree, name: string, label: string) => {
      setAmounts(tree, [...tree.areas], tree.areas.map(() => null), amount);
      tree.colours.fill(colourOf("heap"));
      tree.columns.pop();
      return tree.size > 1 ? [el("h3", {}, label), treeView(store, name, tree, label, [])] : [el("h3", {}, label), el("p", { class: "empty" }, "None.")];
    };
    fill(this.element, el("h2", {}, `Callers and callees, ${this.#nameOf(moment.moment)}`), this.#tools(null),
      el("div", { class: "tools" }, el("label", { for: "function" }, "Function"), select),
      ...(trees ? [...shown(trees.callers, "callers", "Who calls it"), ...shown(trees.callees, "callees", "Whom it calls")] : []));
  }

  #tools(before: Moment | null): HTMLElement {
    const { moments } = this.profile;
    return (
      el("div", { class: "tools" }, el("label", { for: "moment" }, "Moment"), this.#select,
        moments.length > 1 && el("label", { for: "before" }, "Compared with"), moments.length > 1 && this.#beforeSelect,
        !before && this.#by.element));
  }
}
