// How figures went over releases: a line for each figure, and the largest step in it.

import { el, plainTable, section, svg } from "./dom";
import { printable } from "./names";
import { type Rows, table } from "./table";
import type { Release, Trend } from "./types";
import { formatBytes, formatChange, grouped } from "./units";
import { TITLES } from "./words";

/** The size of a drawing, in pixels. */
const SIZE = [260, 48] as const;
const EDGE = 5;
const SHORT_COMMIT = 12;

/** Make a section for each program. */
export function trendSections(releases: Rows<Release> | undefined, trends: Rows<Trend>): HTMLElement {
  const made = table(releases).rows();
  const rows = table(trends).rows();
  const programs = [...new Set(made.map((one) => one.program))];
  return el("div", {}, ...programs.map((program, place) => {
    const own = made.filter((one) => one.program === program);
    const dated = (one: Release) => `${versionOf(one)} (${one.time.slice(0, 10)})`;
    return section(`program-${place + 1}`, printable(program),
      el("p", {}, own.length === 1 ? dated(own[0]) : `${own.length} releases, from ${dated(own[0])} to ${dated(own[own.length - 1])}.`),
      plainTable(["figure", "first", "last", "change", "over the releases, from 0", "largest step"],
        rows.filter((one) => one.program === program).map((one) => cells(one, own)), printable(program)));
  }));
}

const versionOf = (one: Release) => printable(one.is_commit ? one.version.slice(0, SHORT_COMMIT) : one.version);

function cells(one: Trend, releases: Release[]): (string | Element)[] {
  const amount = one.unit === "bytes" ? formatBytes : grouped;
  const change = (size: number) => (one.unit === "bytes" ? formatChange(size) : `${size > 0 ? "+" : ""}${grouped(size)}`);
  const step = one.largest_step;
  const by = step?.owner ? `, ${printable(step.owner)} ${change(step.owner_delta)}` : "";
  const after = releases.find(({ version }) => version === step?.after);
  const title = TITLES[one.figure] ?? one.figure;
  return [
    one.owner === null ? title : `${title} of ${printable(one.owner)}`, amount(one.first), amount(one.last), change(one.change),
    line(one.values, releases.map(versionOf), amount, `${title}: from ${amount(one.first)} to ${amount(one.last)}`),
    step && after ? `${change(step.delta)} with ${versionOf(after)}${by}` : ""];
}

/** Draw values as a line; a value that is not known is a gap. Each point tells its label and value. */
function line(
  values: (number | null)[], labels: string[], amount: (value: number) => string, label: string,
): Element {
  const [width, height] = SIZE;
  const known = values.filter((one) => one !== null);
  // From zero: a step looks as large as it is.
  const most = Math.max(1, ...known);
  const x = (place: number) => EDGE + (values.length > 1 ? (place / (values.length - 1)) * (width - 2 * EDGE) : 0);
  const y = (value: number) => height - EDGE - (value / most) * (height - 2 * EDGE);
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label, class: "line" });
  drawn.append(svg("path", { d: `M0 ${height - EDGE}H${width}`, fill: "none", stroke: "currentColor", "stroke-width": 0.5, opacity: 0.5 }));
  let isDown = false;
  const path = values.map((value, place) => {
    if (value === null) { isDown = false; return ""; }
    const verb = isDown ? "L" : "M";
    isDown = true;
    return `${verb}${x(place).toFixed(1)} ${y(value).toFixed(1)}`;
  }).join("");
  drawn.append(svg("path", { d: path, fill: "none", stroke: "currentColor", "stroke-width": 1.5 }));
  values.forEach((value, place) => {
    if (value === null) return;
    const point = svg("circle", { cx: x(place), cy: y(value), r: values.length > 40 ? 1.5 : 3, fill: "currentColor" });
    point.append(svg("title", {}, `${labels[place]}: ${amount(value)}`));
    drawn.append(point);
  });
  return drawn;
}
