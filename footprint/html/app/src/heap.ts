// The report of heap profiles: memory over time, and which functions asked for it at a moment.

import { table, type HeapData, type Moment, type Table } from "./data";
import { type Choice, choice } from "./choice";
import { colourOf } from "./colours";
import { answerSection, el, evidenceMark, factList, fill, plainTable, section } from "./dom";
import { around, functionLayers, functionsOf } from "./functions";
import { cell, changeColour, GROWN, SAME, SHRUNK } from "./ledger";
import { printable, shortened, shortOwners } from "./names";
import type { Page } from "./page";
import type { Store } from "./store";
import { formatTime, type Snapshot, Timeline } from "./timeline";
import { type Column, column, shareColumn, sums, Tree } from "./tree";
import type { CallRow, Evidence, FunctionTotalsRow, HeapAccountMembers, HeapShare, ProfileRow } from "./types";
import { formatBytes, formatChange, grouped } from "./units";
import { treeView, type Legend } from "./view";

type Amount = (size: number) => string;
type Share = Pick<HeapShare, "owner" | "symbol" | "name" | "bytes">;
type ShownTree = { tree: Tree; legend: Legend };

const PALETTE = 9;
/** The functions in the list of those whose callers can be shown. */
const MOST_FUNCTIONS = 300;

/** One profile with its snapshots, the moments that have a call tree, and the snapshots that the user named. */
interface Profile {
  row: ProfileRow;
  snapshots: Snapshot[];
  moments: Moment[];
  named: (number | null)[];
  totals: FunctionTotalsRow[];
}

function profileOf(data: HeapData, file: string): Profile {
  const row = table(data.heap.profiles).rows().find((one) => one.file === file)!;
  const snapshots = table(data.heap.snapshots).rows()
    .map((one, place) => ({ ...one, used_bytes: data.used_bytes[place], what: `Snapshot ${one.number}` })).filter((one) => one.file === file);
  const totals = table(data.heap.totals).rows().filter((one) => one.file === file);
  return { row, snapshots, moments: Object.values(data.moments).filter((one) => one.file === file), named: data.named[file], totals };
}

/** Make the sections on one profile. */
export function profileSections(data: HeapData, file: string, { store }: Page): (HTMLElement | null)[] {
  const profile = profileOf(data, file);
  const { row, snapshots, moments } = profile;
  // Profiles of declared events count units of the program, not bytes.
  const amount = row.counted === "events" ? grouped : formatBytes;
  const callers = new Callers(profile, amount, store);
  const chart = snapshots.length > 1
    ? new Timeline(snapshots, row.time_unit ?? "", new Set(moments.map((one) => one.moment)), (number, before) => {
      store.set("before", before === null ? profile.named.length > 1 ? "none" : null : String(before));
      store.set("moment", String(number));
    })
    : null;
  callers.watch((moment, before) => chart?.mark(typeof moment === "number" ? moment : null, typeof before === "number" ? before : null));
  const layers = choice(store, "layers", "Layers", [["whole", "All memory"], ["functions", "Top functions"]] as const);
  const showLayers = () => chart?.show(layers.value === "functions" ? functionLayers(moments) : null);
  store.watch("layers", showLayers);
  showLayers();
  const treeCount = moments.filter((one) => typeof one.moment === "number").length;
  return [
    answerSection("Memory over time", tiles(profile, amount),
      chart && treeCount > 1 && layers.element,
      chart?.element ?? el("p", {}, "The profile knows no moments."),
      data.left_out[file] ? el("p", { class: "warning" }, data.left_out[file]) : null),
    callers.element,
    totalsSection(profile, store),
    section("origins", "How these figures were obtained", factList([
      ["Profile", printable(file)], ["Format", row.format], ["Counted", row.counted],
      ["Command", printable(row.command ?? "")], ["Says of itself", printable(row.description ?? "")],
      ["Snapshots", snapshots.length ? `${grouped(snapshots.length)}, ${grouped(treeCount)} with a call tree` : ""],
    ])),
  ];
}

// The figures of the peak and of the end, or of the whole run where the profile has no snapshots.
function tiles({ row, snapshots }: Profile, amount: Amount): HTMLElement {
  const peak = snapshots.find((one) => one.is_peak)
    ?? snapshots.reduce<Snapshot | null>((most, one) => (!most || one.used_bytes > most.used_bytes ? one : most), null);
  const found: [name: string, figure: string, evidence: Evidence | null][] = [];
  if (peak) {
    found.push(["At its peak", formatBytes(peak.used_bytes), row.evidence], ["asked for", formatBytes(peak.live_bytes), null]);
    if (peak.extra_bytes !== null) found.push(["the allocator's own", formatBytes(peak.extra_bytes), null]);
    if (peak.stack_bytes) found.push(["stacks", formatBytes(peak.stack_bytes), null]);
    const last = snapshots[snapshots.length - 1];
    if (last !== peak) found.push(["at the end", formatBytes(last.used_bytes), null]);
  } else if (row.tree_bytes !== null) {
    found.push([row.tally ?? "counted", amount(row.tree_bytes), row.evidence]);
  }
  return el("dl", { class: "tiles" }, ...found.map(([name, figure, evidence], place) =>
    el("div", { class: `tile${place ? "" : " whole"}` }, el("dt", {}, name), el("dd", {}, figure),
      evidence && el("dd", { class: "how" }, evidenceMark(evidence)))));
}

/** The section on which functions asked for the memory of a chosen moment. */
class Callers {
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

/** Make the section on what was counted over the whole run; nothing if the profile counts nothing. */
function totalsSection({ row, totals }: Profile, store: Store): HTMLElement | null {
  if (!totals.length) return null;
  const { tree, rowOf } = functionTree(totals);
  const unit = row.time_unit ?? "";
  const total = (label: string, own: (one: FunctionTotalsRow) => number | null, text: (size: number) => string): Column | null => {
    const values = sums(tree, rowOf.map((one) => (one === null ? null : own(one))));
    return values[0] === null ? null
      : column(label.toLowerCase(), label, (node) => values[node], (size) => (size === null ? "" : text(size)));
  };
  const lives = (node: number) => rowOf[node]?.lifetime ?? null;
  const allocated = sums(tree, rowOf.map((one) => one?.allocated_bytes ?? null));
  allocated.forEach((size, node) => (tree.areas[node] = Math.max(0, size ?? 0)));
  tree.columns = [
    total("Allocated", (one) => one.allocated_bytes, formatBytes), total("Blocks", (one) => one.allocated_blocks, grouped),
    total("Temporary", (one) => one.temporary_blocks, grouped),
    totals[0].lifetime === null ? null
      : column("lifetime", "Lifetime", lives, (time) => (time === null ? "" : formatTime(time, unit))),
    total("Read", (one) => one.read_bytes, formatBytes), total("Written", (one) => one.written_bytes, formatBytes),
    total("Leaked", (one) => one.leaked_bytes, formatBytes),
  ].filter((one) => one !== null);
  return section("totals", "By function, over the whole run",
    treeView(store, "totals", tree, "Over the whole run", [], false));
}

/** Make the table that compares several profiles. */
export function profilesTable(data: HeapData): HTMLElement {
  return plainTable(["profile", "snapshot", "in use", "known"], table(data.heap.profiles).rows().map((one) => {
    const chosen = profileOf(data, one.file).snapshots.find((snapshot) => snapshot.number === one.snapshot);
    return [
      printable(one.file), one.snapshot === null ? "" : String(one.snapshot),
      chosen ? formatBytes(chosen.used_bytes) : "", evidenceMark(one.evidence)];
  }), "Profiles");
}

/** Make the section on what the last of several profiles has more and less than the first. */
export function profileChangeSection({ heap }: HeapData, { store }: Page): HTMLElement {
  const profiles = table(heap.profiles).rows();
  const [first, last] = [profiles[0], profiles[profiles.length - 1]];
  const amount = last.counted === "events" ? grouped : formatBytes;
  const of = (file: string) => table(heap.heap).rows().filter((row) => row.file === file);
  const { tree, legend } = growthTree(of(first.file), of(last.file), amount);
  return section("change", `What grew from ${printable(first.file)} to ${printable(last.file)}`,
    tree.size > 1 ? treeView(store, "change", tree, "What grew", legend) : el("p", { class: "empty" }, "Each function asked for as much in both."));
}

/** Make the section on a heap that was joined with a profile. */
export function heapAccountSection(account: HeapAccountMembers, { store }: Page): HTMLElement {
  const { tree, legend } = shareTree(table(account.shares), formatBytes);
  const figures: [string, number | null][] = [
    ["held by the process in its heap", account.held_bytes], ["apart, in mappings of their own", account.apart_bytes],
    ["asked for, as profiled", account.live_bytes], [`the allocator's own${account.is_extra_modelled ? ", by a model" : ", as profiled"}`, account.extra_bytes],
    [account.is_free_measured ? "free, as the allocator has it" : "free, and used before", account.free_bytes], ["beyond that", account.difference_bytes],
  ];
  const rows = figures.flatMap(([name, size]) => (size === null ? [] : [[name, formatBytes(size)]]));
  return section("heap", "The heap by who asked for it",
    el("p", {}, `By ${printable(account.file)}, a profile of another run (${account.format}, snapshot ${account.snapshot} of ${account.snapshot_count}${account.is_peak ? ", its peak" : ""}). ${
      account.has_end || account.is_peak ? "" : "Massif writes no snapshot at the end: what was freed after this one is unknown. "}`,
      evidenceMark(account.evidence)),
    plainTable(["what", "bytes"], rows, "What the heap is made of"),
    tree.size > 1 ? treeView(store, "heap", tree, "The heap by who asked for it", legend) : el("p", { class: "empty" }, "The profile has no call tree."));
}

// Give the largest owners colours of their own; return the legend.
function colourOwners(tree: Tree, owners: string[]): Legend {
  const places = new Map<string, number>();
  const sizes = new Map<string, number>();
  owners.forEach((owner, node) => {
    if (node) sizes.set(owner, Math.max(sizes.get(owner) ?? 0, tree.areas[node]));
  });
  const short = shortOwners(sizes.keys());
  [...sizes].sort((one, other) => other[1] - one[1]).forEach(([owner], place) => places.set(owner, place < PALETTE ? place + 1 : 0));
  owners.forEach((owner, node) => (tree.colours[node] = node ? places.get(owner)! : 0));
  return [...places].filter(([, place]) => place).map(([owner, place]) => [place, shortened(printable(short(owner)), 60)] as const);
}

// Set the areas and the columns of a tree.
function setAmounts(tree: Tree, bytes: (number | null)[], blocks: (number | null)[], amount: Amount): void {
  bytes.forEach((one, node) => (tree.areas[node] = Math.max(0, one ?? 0)));
  const total = tree.areas[0];
  const text = (size: number | null) => (size ? amount(size) : cell(size));
  tree.amount = amount;
  tree.columns = [
    column("bytes", amount === formatBytes ? "Bytes" : "Units", (node) => bytes[node], text),
    shareColumn(tree, total),
    column("blocks", "Blocks", (node) => blocks[node], (count) => (count === null ? "" : grouped(count))),
  ];
}

function callTree(rows: Table<CallRow>, total: number, amount: Amount): ShownTree {
  const tree = new Tree();
  const owners = [""];
  const bytes: (number | null)[] = [total];
  const blocks: (number | null)[] = [null];
  const nodes = new Map<number, number>([[0, tree.add(-1, "[all calls]")]]);
  for (const row of rows.rows()) {
    const node = tree.add(nodes.get(row.parent) ?? 0, shortened(printable(row.name)),
      `${printable(row.symbol ?? row.name)}\n${printable(row.owner)}`);
    nodes.set(row.node, node);
    owners[node] = row.owner;
    bytes[node] = row.bytes;
    blocks[node] = row.block_count;
  }
  for (const node of tree.children[0]) {
    const count = blocks[node];
    if (count !== null) blocks[0] = (blocks[0] ?? 0) + count;
  }
  setAmounts(tree, bytes, blocks, amount);
  return { tree, legend: colourOwners(tree, owners) };
}

// Build a tree of objects and their functions, which stand alone without an object; return also the object of each node, and the row of each function.
function functionTree<Row extends { owner: string; symbol: string | null; name: string }>(rows: Row[]):
    { tree: Tree; owners: string[]; rowOf: (Row | null)[] } {
  const tree = new Tree();
  tree.add(-1, "[total]");
  const owners = [""];
  const rowOf: (Row | null)[] = [null];
  const groups = new Map<string, number>();
  const short = shortOwners(new Set(rows.map((row) => row.owner)));
  for (const row of rows) {
    let group = groups.get(row.owner);
    if (!row.owner) group = 0;
    if (group === undefined) {
      group = tree.add(0, shortened(printable(short(row.owner))), printable(row.owner));
      groups.set(row.owner, group);
      owners[group] = row.owner;
      rowOf[group] = null;
    }
    const node = tree.add(group, shortened(printable(row.name)), printable(row.symbol ?? row.name));
    owners[node] = row.owner;
    rowOf[node] = row;
  }
  return { tree, owners, rowOf };
}

function shareTree(rows: Table<HeapShare>, amount: Amount): ShownTree {
  const { tree, owners, rowOf } = functionTree(rows.rows());
  setAmounts(tree, sums(tree, rowOf.map((row) => row?.bytes ?? null)), sums(tree, rowOf.map((row) => row?.block_count ?? null)), amount);
  return { tree, legend: colourOwners(tree, owners) };
}

// Build the tree of the functions that have another amount; the area of a function is the size of its change.
export function growthTree(before: Share[], now: Share[], amount: Amount): ShownTree {
  const key = (row: Share) => `${row.owner}\n${row.symbol ?? row.name}`;
  const [old, new_] = [before, now].map((rows) => new Map(rows.map((row) => [key(row), row])));
  const changed = [...new Map([...new_, ...old])].filter(([name]) => old.get(name)?.bytes !== new_.get(name)?.bytes);
  const { tree, rowOf } = functionTree(changed.map(([, row]) => row));
  const bytesIn = (side: Map<string, Share>) => sums(tree, rowOf.map((row) => (row === null ? null : side.get(key(row))?.bytes ?? 0)));
  const [was, is] = [bytesIn(old), bytesIn(new_)];
  const change = was.map((size, node) => (is[node] ?? 0) - (size ?? 0));
  sums(tree, rowOf.map((row, node) => (row === null ? null : Math.abs(change[node])))).forEach((size, node) => (tree.areas[node] = size ?? 0));
  for (let node = 0; node < tree.size; node += 1) tree.colours[node] = changeColour(change[node]);
  const text = (size: number) => (amount === formatBytes ? formatChange(size) : `${size > 0 ? "+" : ""}${grouped(size)}`);
  tree.names[0] = "[what differs]";
  tree.amount = (area) => `${amount(area)}, grown and shrunk,`;
  tree.columns = [
    column("change", "Grew", (node) => change[node], text, true),
    column("before", "Before", (node) => was[node] ?? 0, amount),
    column("after", "After", (node) => is[node] ?? 0, amount),
  ];
  return { tree, legend: [[GROWN, "grew"], [SHRUNK, "shrank"], [SAME, "as much as before"]] };
}
