// Who costs most, and what one costs in its parts.

import { el, plainTable } from "./dom";
import type { Payer } from "./payers";
import { FOLDED_SHARE } from "./boxes";
import { atCount } from "./terms";
import { formatBytes, grouped, percent } from "./units";

const MOST_OWNERS = 5;

/** Make a table of the parts of the cost, the dearest first, and their sum. Of owners the small ones stand together, as in the picture. */
export function payersTable(payers: Payer[], count: bigint, name: (one: Payer) => string, what: "owner" | "part", label: string): HTMLElement {
  const isOne = count === 1n;
  const at = (each: number, once = 0) => (isOne ? []
    : [formatBytes(atCount([{ size_bytes: each, is_once: false }, { size_bytes: once, is_once: true }], count)!)]);
  const sum = (some: Payer[], key: "each" | "once") => some.reduce((all, one) => all + one[key], 0);
  const [each, once] = [sum(payers, "each"), sum(payers, "once")];
  const sorted = payers.filter((one) => one.each > 0).sort((one, other) => other.each - one.each);
  const isSmall = (one: Payer) => one.each < FOLDED_SHARE * each;
  const most = what === "owner" ? Math.min(MOST_OWNERS, sorted.filter((one) => !isSmall(one)).length || MOST_OWNERS) : sorted.length;
  const others = sorted.slice(most);
  const row = (title: string, bytes: number) => [title, formatBytes(bytes), share(bytes, each), ...at(bytes)];
  const small = `${grouped(others.filter(isSmall).length)} below 5%`;
  const rest = others.length === 1 ? name(others[0]) : others.every(isSmall) ? small : `${grouped(others.length)} others, ${small}`;
  return plainTable([what, "each", "of the cost", ...(isOne ? [] : [`at ${grouped(count)}`])], [
    ...sorted.slice(0, most).map((one) => row(name(one), one.each)),
    ...(others.length ? [row(rest, sum(others, "each"))] : []),
    ...(once && !isOne ? [["paid once", "-", "", ...at(0, once)]] : []),
    ["all", formatBytes(each), percent(each, each), ...at(each, once)]], label);
}

function share(part: number, whole: number): HTMLElement {
  const bar = el("span", { class: "bar", "aria-hidden": "true" });
  bar.style.width = `${whole > 0 ? (100 * part) / whole : 0}%`;
  return el("span", { class: "share" }, bar, el("span", { class: "text" }, percent(part, whole)));
}
