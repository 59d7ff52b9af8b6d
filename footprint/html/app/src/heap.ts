// The page of heap profiles: memory over time, and who asked for it at a moment.

import { table, type Table } from "./data";
import { choice, el, evidenceMark, fill, plainTable } from "./dom";
import { cell } from "./ledger";
import { printable, shortened, shortOwners } from "./names";
import { Tree, sums } from "./tree";
import { formatBytes, grouped, percent } from "./units";
import { treeView, type Legend } from "./view";

const SI: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
type Amount = (size: number) => string;

const PALETTE = 9;
const LEFT = 76;
const RIGHT = 14;
const TOP = 20;
const BOTTOM = 26;
const TALL = 240;

/** Write a time with its unit, as footprint/report/text/graph.py does. */
export function formatTime(time: number, unit: string): string {
  if (unit === "B") return formatBytes(Math.round(time));
  let [value, name] = [time, unit];
  if (unit === "ms" && time >= 1000) [value, name] = [time / 1000, "s"];
  if (name && name !== "s" && name !== "ms") {
    const found = SI.find(([factor]) => value >= factor);
    if (found) return `${(value / found[0]).toFixed(2)} ${found[1]}${printable(name)}`;
  }
  return `${value % 1 ? value.toFixed(2) : value.toFixed(0)} ${printable(name)}`.trimEnd();
}

interface Moment {
  moment: number | string;
  calls: unknown;
  shares: unknown;
  bytes: number;
}

/** Make what a page shows of one profile. */
export function profileSections(answers: any, file: string): HTMLElement[] {
  const { heap } = answers;
  const profile = table(heap.profiles).rows().find((one) => one.file === file);
  const snapshots = table(heap.snapshots).rows().filter((one) => one.file === file);
  const moments: Moment[] = (Object.values(answers.moments) as any[]).filter((one) => one.file === file);
  const unit = profile.time_unit ?? "";
  // Units that the program itself declared are no bytes.
  const amount = profile.counted === "events" ? grouped : formatBytes;
  const used = (one: any) => one.live_bytes + (one.extra_bytes ?? 0) + (one.stack_bytes ?? 0);
  const who = el("section", { class: "section", id: "ledger" });
  let by: "calls" | "functions" = "functions";
  let current = moments.find((one) => one.moment === profile.snapshot) ?? moments[0] ?? null;

  const nameOf = (moment: number | string) => {
    if (typeof moment === "string") return `${printable(moment)} over the whole run`;
    const one = snapshots.find((snapshot) => snapshot.number === moment);
    const time = one && one.time !== null ? ` at ${formatTime(one.time, unit)}` : "";
    return `snapshot ${moment}${time}${one?.is_peak ? ", the peak" : ""}`;
  };
  const select = el("select", { id: "moment", "aria-label": "Moment", onchange: () => choose(select.selectedIndex) },
    ...moments.map((one, place) => el("option", { value: place, selected: one === current }, `${nameOf(one.moment)}: ${amount(one.bytes)}`)));
  const chart = snapshots.length > 1
    ? timeline(snapshots, unit, used, new Set(moments.map((one) => one.moment)), (number) => choose(moments.findIndex((one) => one.moment === number)))
    : null;
  const draw = () => {
    chart?.mark(typeof current?.moment === "number" ? current.moment : null);
    if (!current) {
      fill(who, el("h2", {}, "Who asked for it"), el("p", { class: "empty" }, "No call tree could be read: who asked for it is not known."));
      return;
    }
    const { tree, legend } = by === "calls" ? callTree(table(current.calls), current.bytes, amount) : shareTree(table(current.shares), amount);
    fill(who, el("h2", {}, `Who asked for it, ${nameOf(current.moment)}`),
      el("div", { class: "tools" }, el("label", { for: "moment" }, "Moment"), select,
        choice("Add up by", [["functions", "By object and function"], ["calls", "By calls, main first"]] as const, by, (value) => {
          by = value;
          draw();
        })),
      tree.size > 1 ? treeView(tree, "Who asked for it", legend) : el("p", { class: "empty" }, "Nothing was in use then."));
  };
  const choose = (place: number) => {
    current = moments[place] ?? current;
    select.selectedIndex = place;
    draw();
  };
  draw();

  const peak = snapshots.find((one) => one.is_peak) ?? snapshots.reduce((most: any, one) => (!most || used(one) > used(most) ? one : most), null);
  const tiles: [string, string, string | null][] = [];
  if (peak) {
    tiles.push(["At its peak", formatBytes(used(peak)), profile.evidence], ["asked for", formatBytes(peak.live_bytes), null]);
    if (peak.extra_bytes !== null) tiles.push(["the allocator's own", formatBytes(peak.extra_bytes), null]);
    if (peak.stack_bytes) tiles.push(["stacks", formatBytes(peak.stack_bytes), null]);
    const last = snapshots[snapshots.length - 1];
    if (last !== peak) tiles.push(["at the end", formatBytes(used(last)), null]);
  } else if (profile.tree_bytes !== null) {
    tiles.push([profile.tally ?? "counted", amount(profile.tree_bytes), profile.evidence]);
  }
  const facts: [string, string][] = [
    ["Profile", printable(file)], ["Format", profile.format], ["Counted", profile.counted],
    ["Command", printable(profile.command ?? "")], ["Says of itself", printable(profile.description ?? "")],
    ["Snapshots", snapshots.length ? `${grouped(snapshots.length)}, ${grouped(moments.filter((one) => typeof one.moment === "number").length)} with a call tree` : ""],
  ];
  return [
    el("section", { class: "answer", "aria-labelledby": "answer-title" },
      el("h2", { id: "answer-title" }, "Memory over time"),
      el("dl", { class: "tiles" }, ...tiles.map(([name, figure, evidence], place) =>
        el("div", { class: `tile${place ? "" : " whole"}` }, el("dt", {}, name), el("dd", {}, figure),
          evidence && el("dd", { class: "how" }, evidenceMark(evidence))))),
      chart?.element ?? el("p", {}, "The profile knows no moments.")),
    who,
    el("section", { class: "section" }, el("h2", {}, "How these figures were obtained"),
      el("dl", { class: "facts" }, ...facts.filter(([, text]) => text).flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]))),
  ];
}

/** Make the table of several profiles beside each other. */
export function profilesTable(heap: any): HTMLElement {
  return plainTable(["profile", "snapshot", "in use", "known"], table(heap.profiles).rows().map((one) => [
    printable(one.file), one.snapshot === null ? "" : String(one.snapshot),
    one.live_bytes === null ? "" : formatBytes(one.live_bytes + (one.extra_bytes ?? 0) + (one.stack_bytes ?? 0)),
    evidenceMark(one.evidence)]), "Profiles");
}

function coloured(tree: Tree, owners: string[]): Legend {
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

function amounts(tree: Tree, bytes: (number | null)[], blocks: (number | null)[], amount: Amount): void {
  const total = tree.areas[0];
  tree.amount = amount;
  tree.columns = [
    {
      key: "bytes", label: amount === formatBytes ? "Bytes" : "Units",
      value: (node) => bytes[node], text: (node) => (bytes[node] ? amount(bytes[node]!) : cell(bytes[node])),
    },
    {
      key: "share", label: "Share", value: (node) => (total ? tree.areas[node] / total : null),
      text: (node) => percent(tree.areas[node], total), share: (node) => (total ? tree.areas[node] / total : 0),
    },
    { key: "blocks", label: "Blocks", value: (node) => blocks[node], text: (node) => (blocks[node] === null ? "" : grouped(blocks[node]!)) },
  ];
}

/** Make what a joined profile says of the heap of a process; null where none was joined. */
export function heapAccountSection(account: any): HTMLElement | null {
  if (!account) return null;
  const { tree, legend } = shareTree(table(account.shares), formatBytes);
  const figures: [string, number | null][] = [
    ["held by the process in its heap", account.held_bytes], ["apart, in mappings of their own", account.apart_bytes],
    ["asked for, as profiled", account.live_bytes], ["the allocator's own, as profiled", account.extra_bytes],
    ["free, and used before", account.free_bytes], ["beyond that", account.difference_bytes],
  ];
  return el("section", { class: "section", id: "heap" }, el("h2", {}, "The heap by who asked for it"),
    el("p", {}, `As ${printable(account.file)} tells of another run (${account.format}, snapshot ${account.snapshot} of ${account.snapshot_count}${account.is_peak ? ", its peak" : ""}). `,
      evidenceMark(account.evidence)),
    plainTable(["what", "bytes"], figures.filter(([, size]) => size !== null).map(([name, size]) => [name, formatBytes(size!)]), "What the heap is made of"),
    tree.size > 1 ? treeView(tree, "The heap by who asked for it", legend) : el("p", { class: "empty" }, "The profile has no call tree."));
}

function callTree(rows: Table, total: number, amount: Amount): { tree: Tree; legend: Legend } {
  const tree = new Tree();
  const owners = [""];
  const bytes: (number | null)[] = [total];
  const blocks: (number | null)[] = [null];
  const nodes = new Map<number, number>([[0, tree.add(-1, "[all calls]")]]);
  const [number, parent, owner, symbol, name, size, count] =
    ["node", "parent", "owner", "symbol", "name", "bytes", "block_count"].map((key) => rows.column(key));
  for (let row = 0; row < rows.size; row += 1) {
    const node = tree.add(nodes.get(parent[row]) ?? 0, shortened(printable(name[row])), printable(symbol[row] ?? name[row]));
    nodes.set(number[row], node);
    owners[node] = owner[row];
    tree.titles[node] = `${tree.titles[node]}\n${printable(owner[row])}`;
    bytes[node] = size[row];
    blocks[node] = count[row];
  }
  tree.children[0].forEach((node) => {
    if (blocks[node] !== null) blocks[0] = (blocks[0] ?? 0) + blocks[node]!;
  });
  bytes.forEach((one, node) => (tree.areas[node] = Math.max(0, one ?? 0)));
  amounts(tree, bytes, blocks, amount);
  return { tree, legend: coloured(tree, owners) };
}

function shareTree(rows: Table, amount: Amount): { tree: Tree; legend: Legend } {
  const tree = new Tree();
  tree.add(-1, "[total]");
  const owners = [""];
  const own: (number | null)[] = [null];
  const counts: (number | null)[] = [null];
  const [owner, symbol, name, size, count] = ["owner", "symbol", "name", "bytes", "block_count"].map((key) => rows.column(key));
  const nodes = new Map<string, number>();
  const short = shortOwners(new Set<string>(owner));
  for (let row = 0; row < rows.size; row += 1) {
    let group = nodes.get(owner[row]);
    if (group === undefined) {
      group = tree.add(0, shortened(printable(short(owner[row]))), printable(owner[row]));
      nodes.set(owner[row], group);
      owners[group] = owner[row];
      own[group] = counts[group] = null;
    }
    const node = tree.add(group, shortened(printable(name[row])), printable(symbol[row] ?? name[row]));
    owners[node] = owner[row];
    own[node] = size[row];
    counts[node] = count[row];
  }
  const bytes = sums(tree, own);
  bytes.forEach((one, node) => (tree.areas[node] = Math.max(0, one ?? 0)));
  amounts(tree, bytes, sums(tree, counts), amount);
  return { tree, legend: coloured(tree, owners) };
}

// --- over time -------------------------------------------------------------------------------------------------------

interface Timeline {
  element: HTMLElement;
  mark(number: number | null): void;
}

function svg(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag) as SVGElement;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  if (text) made.textContent = text;
  return made;
}

function timeline(
  snapshots: any[], unit: string, used: (one: any) => number, withTree: Set<number | string>, onchoose: (number: number) => void,
): Timeline {
  const chart = svg("svg", { class: "chart", role: "img" });
  const status = el("p", { class: "status" });
  const most = snapshots.reduce((all, one) => Math.max(all, used(one)), 1);
  const times = snapshots.map((one, place) => one.time ?? place);
  const [first, last] = [times[0], Math.max(times[times.length - 1], times[0] + 1e-9)];
  const peak = snapshots.find((one) => one.is_peak);
  let marked: number | null = null;
  let width = 800;
  const x = (time: number) => LEFT + ((time - first) / (last - first)) * (width - LEFT - RIGHT);
  const y = (bytes: number) => TOP + (1 - bytes / most) * (TALL - TOP - BOTTOM);
  const layers: [string, (one: any) => number][] = [
    ["asked for", (one) => one.live_bytes], ["allocator", (one) => one.extra_bytes ?? 0], ["stacks", (one) => one.stack_bytes ?? 0],
  ];
  const present = layers.filter(([, size]) => snapshots.some((one) => size(one) > 0));

  const draw = () => {
    chart.setAttribute("viewBox", `0 0 ${width} ${TALL}`);
    chart.setAttribute("height", String(TALL));
    const parts: SVGElement[] = [];
    for (let step = 0; step <= 4; step += 1) {
      const bytes = (most * step) / 4;
      parts.push(svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(bytes), y2: y(bytes), class: "rule" }));
      parts.push(svg("text", { x: LEFT - 8, y: y(bytes) + 4, "text-anchor": "end" }, formatBytes(bytes)));
    }
    for (const [time, anchor] of [[first, "start"], [last, "end"]] as const) {
      parts.push(svg("text", { x: x(time), y: TALL - 6, "text-anchor": anchor }, formatTime(time, unit)));
    }
    let below = snapshots.map(() => 0);
    present.forEach(([name, size], place) => {
      const above = snapshots.map((one, index) => below[index] + size(one));
      // From each moment to the next it stays as it was: nothing is known between.
      const steps = (values: number[]) => values.map((value, index) =>
        `${x(times[index])},${y(value)}${index + 1 < values.length ? ` ${x(times[index + 1])},${y(value)}` : ""}`);
      const shape = svg("polygon", { class: `layer-${place}`, points: [...steps(above), ...steps(below).reverse().map((pair) => pair.split(" ").reverse().join(" "))].join(" ") });
      shape.append(svg("title", {}, name));
      parts.push(shape);
      below = above;
    });
    snapshots.forEach((one, index) => {
      if (!withTree.has(one.number)) return;
      parts.push(svg("circle", { cx: x(times[index]), cy: y(used(one)), r: one.number === marked ? 6 : 3.5, class: one.number === marked ? "dot chosen" : "dot" }));
    });
    if (peak) {
      const at = x(peak.time ?? snapshots.indexOf(peak));
      parts.push(svg("line", { x1: at, x2: at, y1: TOP - 6, y2: TALL - BOTTOM, class: "peak" }));
      parts.push(svg("text", { x: at, y: TOP - 8, "text-anchor": at > width - 120 ? "end" : at < LEFT + 60 ? "start" : "middle" }, `peak ${formatBytes(used(peak))}`));
    }
    chart.replaceChildren(...parts);
    chart.setAttribute("aria-label", `Memory over time, ${snapshots.length} snapshots, at most ${formatBytes(most)}`);
  };
  const nearest = (event: MouseEvent, wanted: (one: any) => boolean) => {
    const at = event.clientX - chart.getBoundingClientRect().left;
    let found = -1;
    snapshots.forEach((one, index) => {
      if (wanted(one) && (found < 0 || Math.abs(x(times[index]) - at) < Math.abs(x(times[found]) - at))) found = index;
    });
    return found;
  };
  chart.addEventListener("mousemove", (event) => {
    const one = snapshots[nearest(event as MouseEvent, () => true)];
    const parts = present.map(([name, size]) => `${name} ${formatBytes(size(one))}`).join(", ");
    fill(status, `Snapshot ${one.number}${one.time === null ? "" : ` at ${formatTime(one.time, unit)}`}: ${formatBytes(used(one))} (${parts})${one.is_peak ? ", the peak" : ""}`);
  });
  chart.addEventListener("click", (event) => {
    const found = nearest(event as MouseEvent, (one) => withTree.has(one.number));
    if (found >= 0) onchoose(snapshots[found].number);
  });
  fill(status, "A click chooses the nearest moment with a call tree, of which the dots tell.");
  const legend = el("ul", { class: "legend" }, ...present.map(([name], place) => el("li", {}, el("span", { class: `swatch part-${place}` }), name)));
  const element = el("div", { class: "time" }, legend, chart as any, status);
  new ResizeObserver(() => {
    width = Math.max(280, element.clientWidth);
    draw();
  }).observe(element);
  draw();
  return { element, mark: (number) => { marked = number; draw(); } };
}
