// Memory over time as a chart, in which a click chooses a moment, and a drag compares two.

import { axes } from "./axes";
import { type Chart, HEIGHT, type Layer, type Snapshot } from "./chart";
import { followPointer } from "./chartpointer";
import { brush, dots, eventLines, layerShapes, outline } from "./chartshapes";
import { colour } from "./colours";
import { el, fill, svg } from "./dom";
import { formatBytes } from "./units";

/** The layers of the whole memory, from below. */
const WHOLE: Layer[] = [
  { name: "asked for", colour: colour("heap"), size: (one) => one.live_bytes },
  { name: "allocator", colour: colour("rest"), size: (one) => one.extra_bytes ?? 0 },
  { name: "stacks", colour: colour("stack"), size: (one) => one.stack_bytes ?? 0 },
];

export interface Timeline {
  element: HTMLElement;
  /** Show layers, null for the parts of the whole memory. */
  show(layers: Layer[] | null): void;
  /** Mark the chosen snapshot, and the one that it is compared with. */
  mark(number: number | null, before: number | null): void;
}

/**
 * Make the chart of snapshots.
 *
 * @param withTree The numbers of the snapshots that have a call tree.
 * @param onchoose Called with the number of the snapshot that a click chose, or with those at both ends of a drag.
 */
export function timeline(
  snapshots: Snapshot[], unit: string, withTree: Set<number | string>, onchoose: (number: number, before: number | null) => void,
): Timeline {
  const times = snapshots.map((one, place) => one.time ?? place);
  const chart: Chart = { snapshots, times, unit, withTree, layers: [], known: [], most: 1, marked: [], dragged: null, width: 800 };
  const canvas = svg("svg", { class: "chart", role: "img", height: HEIGHT });
  const status = el("p", { class: "status" }, "Each dot is a moment whose parts are known: click one, or drag from one to another to compare them.");
  const legend = el("ul", { class: "legend" });
  const element = el("div", { class: "time" }, legend, canvas, status);
  const draw = () => {
    canvas.setAttribute("viewBox", `0 0 ${chart.width} ${HEIGHT}`);
    canvas.setAttribute("aria-label", `Memory over time, ${snapshots.length} snapshots, at most ${formatBytes(chart.most)}`);
    canvas.replaceChildren(...[axes, layerShapes, brush, outline, dots, eventLines].flatMap((part) => part(chart)));
  };
  const show = (layers: Layer[] | null) => {
    chart.known = [...snapshots.keys()].filter((place) => !layers || withTree.has(snapshots[place].number));
    chart.layers = (layers ?? WHOLE).filter(({ size }) => snapshots.some((one) => size(one) > 0));
    chart.most = snapshots.reduce((all, one) => Math.max(all, one.used_bytes, chart.layers.reduce((sum, { size }) => sum + size(one), 0)), 1);
    fill(legend, ...chart.layers.map(({ name, colour: shown }) => {
      const swatch = el("span", { class: "swatch" });
      swatch.style.background = shown;
      return el("li", {}, swatch, name);
    }));
    draw();
  };
  const mark = (number: number | null, before: number | null) => {
    chart.marked = [number, before];
    draw();
  };
  followPointer(chart, canvas, draw, (text) => fill(status, text), onchoose);
  new ResizeObserver(() => {
    chart.width = Math.max(280, element.clientWidth);
    draw();
  }).observe(element);
  show(null);
  return { element, show, mark };
}
