// Memory over time as a chart, in which a click chooses a moment, and a drag compares two.

import { colour } from "./colours";
import { el, fill, svg } from "./dom";
import { printable } from "./names";
import type { SnapshotRow } from "./types";
import { formatBytes } from "./units";

const SI: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const LEFT = 76;
const RIGHT = 14;
const TOP = 20;
const BOTTOM = 26;
const HEIGHT = 240;
/** The least width of a drag that compares two moments. */
const LEAST_DRAG_PX = 6;

/** A layer of the chart. */
export interface Layer {
  name: string;
  colour: string;
  size: (one: Snapshot) => number;
}

/** The layers of the whole memory, from below. */
const WHOLE: Layer[] = [
  { name: "asked for", colour: colour("heap"), size: (one) => one.live_bytes },
  { name: "allocator", colour: colour("rest"), size: (one) => one.extra_bytes ?? 0 },
  { name: "stacks", colour: colour("stack"), size: (one) => one.stack_bytes ?? 0 },
];

/** A moment with all memory in use then: a snapshot of a profile, or a tick of a watch. */
export type Snapshot = Pick<SnapshotRow, "number" | "time" | "live_bytes" | "extra_bytes" | "stack_bytes" | "is_peak"> & {
  used_bytes: number;
  what: string;
  /** What happened then, where it is marked. */
  event?: string;
};

/** Write a time with its unit, as in footprint/formats/graph.py. */
export function formatTime(time: number, unit: string): string {
  if (unit === "B") return formatBytes(Math.round(time));
  let [value, name] = [time, unit];
  if (unit === "ms" && time >= 1000) [value, name] = [time / 1000, "s"];
  if (name === "s" && value >= 60) {
    const [hours, minutes, seconds] = [Math.floor(value / 3600), Math.floor((value % 3600) / 60), Math.floor(value % 60)];
    const parts = hours ? [[hours, "h"], [minutes, "min"]] as const : [[minutes, "min"], [seconds, "s"]] as const;
    return parts.filter(([count], place) => !place || count).map(([count, word]) => `${count} ${word}`).join(" ");
  }
  if (name && name !== "s" && name !== "ms") {
    const found = SI.find(([factor]) => value >= factor);
    if (found) return `${(value / found[0]).toFixed(2)} ${found[1]}${printable(name)}`;
  }
  return `${value % 1 ? value.toFixed(2) : value.toFixed(0)} ${printable(name)}`.trimEnd();
}

// About as many round numbers between two: multiples of 1, 2 or 5 times a power of ten.
function ticks(from: number, to: number, count: number): number[] {
  const least = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * ([1, 2, 5].find((one) => one * power >= least * 0.71) ?? 10);
  const found: number[] = [];
  for (let place = Math.ceil(from / step); place * step <= to; place += 1) found.push(Number((place * step).toPrecision(12)));
  return found;
}

/** The chart of the snapshots of a profile. */
export class Timeline {
  readonly element: HTMLElement;
  readonly #chart = svg("svg", { class: "chart", role: "img" });
  readonly #status = el("p", { class: "status" });
  readonly #legend = el("ul", { class: "legend" });
  readonly #times: number[];
  #most = 1;
  #layers: Layer[] = [];
  /** The snapshots whose layers are known. */
  #known: number[] = [];
  #marked: (number | null)[] = [];
  #dragged: [from: number, to: number] | null = null;
  #width = 800;

  /**
   * @param withTree The numbers of the snapshots that have a call tree.
   * @param onchoose Called with the number of the snapshot that a click chose, or with those at both ends of a drag.
   */
  constructor(
    private readonly snapshots: Snapshot[], private readonly unit: string, private readonly withTree: Set<number | string>,
    private readonly onchoose: (number: number, before: number | null) => void,
  ) {
    this.#times = snapshots.map((one, place) => one.time ?? place);
    this.#chart.addEventListener("pointerdown", (event) => {
      this.#dragged = [this.#place(event), this.#place(event)];
      this.#chart.setPointerCapture(event.pointerId);
    });
    this.#chart.addEventListener("pointermove", (event) => {
      this.#describe(snapshots[this.#nearest(this.#place(event), () => true)]);
      if (!this.#dragged) return;
      this.#dragged[1] = this.#place(event);
      this.#draw();
    });
    this.#chart.addEventListener("pointerup", () => this.#choose());
    fill(this.#status, "Each dot is a moment whose parts are known: click one, or drag from one to another to compare them.");
    this.element = el("div", { class: "time" }, this.#legend, this.#chart, this.#status);
    new ResizeObserver(() => {
      this.#width = Math.max(280, this.element.clientWidth);
      this.#draw();
    }).observe(this.element);
    this.show(null);
  }

  /** Show layers, null for the parts of the whole memory. */
  show(layers: Layer[] | null): void {
    this.#known = this.snapshots.map((_, place) => place).filter((place) => !layers || this.withTree.has(this.snapshots[place].number));
    this.#layers = (layers ?? WHOLE).filter(({ size }) => this.snapshots.some((one) => size(one) > 0));
    this.#most = this.snapshots.reduce((all, one) => Math.max(all, one.used_bytes, this.#layers.reduce((sum, { size }) => sum + size(one), 0)), 1);
    fill(this.#legend, ...this.#layers.map(({ name, colour: shown }) => {
      const swatch = el("span", { class: "swatch" });
      swatch.style.background = shown;
      return el("li", {}, swatch, name);
    }));
    this.#draw();
  }

  #choose(): void {
    if (!this.#dragged) return;
    const [from, to] = this.#dragged.sort((one, other) => one - other);
    this.#dragged = null;
    const hasTree = (one: Snapshot) => this.withTree.has(one.number);
    const [first, last] = [from, to].map((x) => this.#nearest(x, hasTree));
    const isDrag = to - from >= LEAST_DRAG_PX && first !== last;
    if (last >= 0) this.onchoose(this.snapshots[last].number, isDrag ? this.snapshots[first].number : null);
    this.#draw();
  }

  /** Mark the chosen snapshot, and the one that it is compared with. */
  mark(number: number | null, before: number | null): void {
    this.#marked = [number, before];
    this.#draw();
  }

  #x(time: number): number {
    const first = this.#times[0];
    const last = Math.max(this.#times[this.#times.length - 1], first + 1e-9);
    return LEFT + ((time - first) / (last - first)) * (this.#width - LEFT - RIGHT);
  }

  #y(bytes: number): number {
    return TOP + (1 - bytes / this.#most) * (HEIGHT - TOP - BOTTOM);
  }

  #draw(): void {
    this.#chart.setAttribute("viewBox", `0 0 ${this.#width} ${HEIGHT}`);
    this.#chart.setAttribute("height", String(HEIGHT));
    this.#chart.setAttribute("aria-label", `Memory over time, ${this.snapshots.length} snapshots, at most ${formatBytes(this.#most)}`);
    this.#chart.replaceChildren(...this.#axes(), ...this.#shapes(), ...this.#brush(), ...this.#outline(), ...this.#dots(), ...this.#events());
  }

  #axes(): SVGElement[] {
    const parts: SVGElement[] = [];
    // Round numbers of the unit that the largest figure has.
    const unit = 1024 ** Math.floor(Math.log2(this.#most) / 10);
    for (const step of ticks(0, this.#most / unit, 4)) {
      const y = this.#y(step * unit);
      parts.push(svg("line", { x1: LEFT, x2: this.#width - RIGHT, y1: y, y2: y, class: "rule" }));
      parts.push(svg("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, formatBytes(step * unit)));
    }
    const [first, last] = [this.#times[0], this.#times[this.#times.length - 1]];
    // Round numbers of seconds, minutes or hours.
    const span = (last - first) / (this.unit === "ms" ? 1000 : 1);
    const part = (this.unit !== "ms" && this.unit !== "s") || span < 120 ? 1 : (span < 7200 ? 60 : 3600) * (this.unit === "ms" ? 1000 : 1);
    for (const time of ticks(first / part, last / part, Math.floor(this.#width / 160)).slice(1, -1).map((one) => one * part)) {
      const x = this.#x(time);
      if (x < LEFT + 90 || x > this.#width - 110) continue;
      parts.push(svg("text", { x, y: HEIGHT - 6, "text-anchor": "middle" }, formatTime(time, this.unit).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ")));
    }
    for (const [time, anchor] of [[this.#times[0], "start"], [this.#times[this.#times.length - 1], "end"]] as const) {
      parts.push(svg("text", { x: this.#x(time), y: HEIGHT - 6, "text-anchor": anchor }, formatTime(time, this.unit)));
    }
    return parts;
  }

  #shapes(): SVGElement[] {
    // Nothing is known between two snapshots: the line stays level until the next one.
    const times = [...this.#known.map((place) => this.#times[place]), ...(this.#known.length < this.#times.length ? this.#times.slice(-1) : [])];
    const steps = (values: number[]) => values.flatMap((value, place) =>
      times.slice(place, place + 2).map((time) => `${this.#x(time)},${this.#y(value)}`));
    let below = this.#known.map(() => 0);
    return this.#layers.map(({ name, size, colour: shown }) => {
      const above = this.#known.map((at, place) => below[place] + size(this.snapshots[at]));
      const shape = svg("polygon", { fill: shown, points: [...steps(above), ...steps(below).reverse()].join(" ") });
      shape.append(svg("title", {}, name));
      below = above;
      return shape;
    });
  }

  #brush(): SVGElement[] {
    if (!this.#dragged) return [];
    const [from, to] = [...this.#dragged].sort((one, other) => one - other);
    return [svg("rect", { x: from, width: to - from, y: TOP, height: HEIGHT - TOP - BOTTOM, class: "brush" })];
  }

  #dots(): SVGElement[] {
    return this.snapshots.flatMap((one, place) => {
      if (!this.withTree.has(one.number)) return [];
      const isMarked = this.#marked.includes(one.number);
      return [svg("circle", {
        cx: this.#x(this.#times[place]), cy: this.#y(one.used_bytes), r: isMarked ? 6 : this.withTree.size > 40 ? 2 : 3.5, class: isMarked ? "dot chosen" : "dot",
      })];
    });
  }

  // All memory, where the layers are only known at some moments.
  #outline(): SVGElement[] {
    if (this.#known.length === this.snapshots.length) return [];
    const points = this.snapshots.flatMap((one, place) => this.#times.slice(place, place + 2).map((time) => `${this.#x(time)},${this.#y(one.used_bytes)}`)).join(" ");
    return [svg("polyline", { points, class: "outline" })];
  }

  // The peak, and the events whose text has room beside it.
  #events(): SVGElement[] {
    const taken: [from: number, to: number][] = [];
    const textOf = (one: Snapshot) => (one.is_peak ? `peak ${formatBytes(one.used_bytes)}` : one.event);
    const places = this.snapshots.map((_, place) => place).filter((place) => textOf(this.snapshots[place]));
    return places.sort((one, other) => Number(this.snapshots[other].is_peak) - Number(this.snapshots[one].is_peak)).flatMap((place) => {
      const x = this.#x(this.#times[place]);
      const text = textOf(this.snapshots[place])!;
      const wide = 7 * text.length;
      const from = Math.min(Math.max(x - wide / 2, LEFT), this.#width - wide);
      const isFree = taken.every(([start, end]) => from > end || from + wide < start);
      if (isFree) taken.push([from, from + wide]);
      return [
        svg("line", { x1: x, x2: x, y1: TOP - 6, y2: HEIGHT - BOTTOM, class: "peak" }),
        ...(isFree ? [svg("text", { x: from + wide / 2, y: TOP - 8, "text-anchor": "middle" }, text)] : []),
      ];
    });
  }

  // The place of the pointer in the chart.
  #place(event: MouseEvent): number {
    return event.clientX - this.#chart.getBoundingClientRect().left;
  }

  #nearest(at: number, isWanted: (one: Snapshot) => boolean): number {
    const distance = (place: number) => Math.abs(this.#x(this.#times[place]) - at);
    let found = -1;
    this.snapshots.forEach((one, place) => {
      if (isWanted(one) && (found < 0 || distance(place) < distance(found))) found = place;
    });
    return found;
  }

  #describe(one: Snapshot): void {
    const parts = (this.#known.includes(this.snapshots.indexOf(one)) ? this.#layers : []).map(({ name, size }) => `${name} ${formatBytes(size(one))}`).join(", ");
    const time = one.time === null ? "" : ` at ${formatTime(one.time, this.unit)}`;
    fill(this.#status, `${one.what}${time}: ${formatBytes(one.used_bytes)}${parts && ` (${parts})`}${one.is_peak ? ", the peak" : ""}`);
  }
}
