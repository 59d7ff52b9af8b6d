// Memory over time as a chart, in which a click chooses a moment.

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
/** The layers of the chart, from below. */
const LAYERS: [name: string, size: (one: SnapshotRow) => number, colour: "heap" | "rest" | "stack"][] = [
  ["asked for", (one) => one.live_bytes, "heap"], ["allocator", (one) => one.extra_bytes ?? 0, "rest"],
  ["stacks", (one) => one.stack_bytes ?? 0, "stack"],
];

/** A snapshot of a profile, with all memory in use then. */
export type Snapshot = SnapshotRow & { used_bytes: number };

/** Write a time with its unit, as in footprint/formats/graph.py. */
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

/** The chart of the snapshots of a profile. */
export class Timeline {
  readonly element: HTMLElement;
  private readonly chart = svg("svg", { class: "chart", role: "img" });
  private readonly status = el("p", { class: "status" });
  private readonly times: number[];
  private readonly most: number;
  private readonly layers: typeof LAYERS;
  private marked: number | null = null;
  private width = 800;

  /**
   * @param withTree The numbers of the snapshots that have a call tree.
   * @param onchoose Called with the number of the snapshot that a click chose.
   */
  constructor(
    private readonly snapshots: Snapshot[], private readonly unit: string, private readonly withTree: Set<number | string>,
    private readonly onchoose: (number: number) => void,
  ) {
    this.times = snapshots.map((one, place) => one.time ?? place);
    this.most = snapshots.reduce((all, one) => Math.max(all, one.used_bytes), 1);
    this.layers = LAYERS.filter(([, size]) => snapshots.some((one) => size(one) > 0));
    this.chart.addEventListener("mousemove", (event) => this.describe(snapshots[this.nearest(event, () => true)]));
    this.chart.addEventListener("click", (event) => {
      const found = this.nearest(event, (one) => withTree.has(one.number));
      if (found >= 0) this.onchoose(snapshots[found].number);
    });
    fill(this.status, "Each dot is a moment with a call tree; a click chooses the nearest one.");
    const legend = el("ul", { class: "legend" },
      ...this.layers.map(([name, , meaning]) => {
        const swatch = el("span", { class: "swatch" });
        swatch.style.background = colour(meaning);
        return el("li", {}, swatch, name);
      }));
    this.element = el("div", { class: "time" }, legend, this.chart, this.status);
    new ResizeObserver(() => {
      this.width = Math.max(280, this.element.clientWidth);
      this.draw();
    }).observe(this.element);
    this.draw();
  }

  /** Mark the chosen snapshot. */
  mark(number: number | null): void {
    this.marked = number;
    this.draw();
  }

  private x(time: number): number {
    const first = this.times[0];
    const last = Math.max(this.times[this.times.length - 1], first + 1e-9);
    return LEFT + ((time - first) / (last - first)) * (this.width - LEFT - RIGHT);
  }

  private y(bytes: number): number {
    return TOP + (1 - bytes / this.most) * (HEIGHT - TOP - BOTTOM);
  }

  private draw(): void {
    this.chart.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    this.chart.setAttribute("height", String(HEIGHT));
    this.chart.setAttribute("aria-label", `Memory over time, ${this.snapshots.length} snapshots, at most ${formatBytes(this.most)}`);
    this.chart.replaceChildren(...this.axes(), ...this.shapes(), ...this.dots(), ...this.peakLine());
  }

  private axes(): SVGElement[] {
    const parts: SVGElement[] = [];
    for (let step = 0; step <= 4; step += 1) {
      const bytes = (this.most * step) / 4;
      const y = this.y(bytes);
      parts.push(svg("line", { x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y, class: "rule" }));
      parts.push(svg("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, formatBytes(bytes)));
    }
    for (const [time, anchor] of [[this.times[0], "start"], [this.times[this.times.length - 1], "end"]] as const) {
      parts.push(svg("text", { x: this.x(time), y: HEIGHT - 6, "text-anchor": anchor }, formatTime(time, this.unit)));
    }
    return parts;
  }

  private shapes(): SVGElement[] {
    // Nothing is known between two snapshots: the line stays level until the next one.
    const steps = (values: number[]) => values.flatMap((value, place) =>
      this.times.slice(place, place + 2).map((time) => `${this.x(time)},${this.y(value)}`));
    let below = this.snapshots.map(() => 0);
    return this.layers.map(([name, size, meaning]) => {
      const above = this.snapshots.map((one, place) => below[place] + size(one));
      const shape = svg("polygon", { fill: colour(meaning), points: [...steps(above), ...steps(below).reverse()].join(" ") });
      shape.append(svg("title", {}, name));
      below = above;
      return shape;
    });
  }

  private dots(): SVGElement[] {
    return this.snapshots.flatMap((one, place) => {
      if (!this.withTree.has(one.number)) return [];
      const isMarked = one.number === this.marked;
      return [svg("circle", {
        cx: this.x(this.times[place]), cy: this.y(one.used_bytes), r: isMarked ? 6 : 3.5, class: isMarked ? "dot chosen" : "dot",
      })];
    });
  }

  private peakLine(): SVGElement[] {
    const place = this.snapshots.findIndex((one) => one.is_peak);
    if (place < 0) return [];
    const x = this.x(this.times[place]);
    const anchor = x > this.width - 120 ? "end" : x < LEFT + 60 ? "start" : "middle";
    return [
      svg("line", { x1: x, x2: x, y1: TOP - 6, y2: HEIGHT - BOTTOM, class: "peak" }),
      svg("text", { x, y: TOP - 8, "text-anchor": anchor }, `peak ${formatBytes(this.snapshots[place].used_bytes)}`),
    ];
  }

  private nearest(event: MouseEvent, isWanted: (one: Snapshot) => boolean): number {
    const at = event.clientX - this.chart.getBoundingClientRect().left;
    const distance = (place: number) => Math.abs(this.x(this.times[place]) - at);
    let found = -1;
    this.snapshots.forEach((one, place) => {
      if (isWanted(one) && (found < 0 || distance(place) < distance(found))) found = place;
    });
    return found;
  }

  private describe(one: Snapshot): void {
    const parts = this.layers.map(([name, size]) => `${name} ${formatBytes(size(one))}`).join(", ");
    const time = one.time === null ? "" : ` at ${formatTime(one.time, this.unit)}`;
    fill(this.status, `Snapshot ${one.number}${time}: ${formatBytes(one.used_bytes)} (${parts})${one.is_peak ? ", the peak" : ""}`);
  }
}
