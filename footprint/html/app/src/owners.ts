// Who costs most, and what one costs in its parts.

import type { Costs } from "./cost";
import { el, plainTable } from "./dom";
import type { Payer } from "./payers";
import { FOLDED_SHARE } from "./boxes";
import { atCount, paidByEach } from "./terms";
import { formatBytes, grouped, percent } from "./units";

const MOST_OWNERS = 5;

/** Make a table of the parts of the cost, the dearest first, and their sum. Of owners the small ones stand together, as in the picture. */
export function payersTable(payers: Payer[], costs: Costs, count: bigint, name: (one: Payer) => string, what: "owner" | "part", label: string): HTMLElement {
  const isOne = count === 1n;
  const each = Number(costs.each);
  const sorted = payers.filter((one) => one.each_bytes > 0).sort((one, other) => other.each_bytes - one.each_bytes);
  const isSmall = (one: Payer) => one.each_bytes < FOLDED_SHARE * each;
  const most = what === "owner" ? Math.min(MOST_OWNERS, sorted.filter((one) => !isSmall(one)).length || MOST_OWNERS) : sorted.length;
  const others = sorted.slice(most);
  const row = (title: string, some: Payer[]) => {
    const terms = paidByEach(...some.map((one) => one.each_bytes));
    const bytes = atCount(terms, 1n)!;
    return [title, formatBytes(bytes), share(Number(bytes), each), ...(isOne ? [] : [formatBytes(atCount(terms, count)!)])];
  };
  const small = `${grouped(others.filter(isSmall).length)} below 5%`;
  const rest = others.length === 1 ? name(others[0]) : others.every(isSmall) ? small : `${grouped(others.length)} others, ${small}`;
  return plainTable([what, "each", "of the cost", ...(isOne ? [] : [`at ${grouped(count)}`])], [
    ...sorted.slice(0, most).map((one) => row(name(one), [one])),
    ...(others.length ? [row(rest, others)] : []),
    ...(costs.once && !isOne ? [["paid once", "-", "", formatBytes(costs.once)]] : []),
    ["all", formatBytes(costs.each), percent(each, each), ...(isOne ? [] : [formatBytes(costs.total(count))])]], label);
}

function share(part: number, whole: number): HTMLElement {
  const bar = el("span", { class: "bar", "aria-hidden": "true" });
  bar.style.width = `${whole > 0 ? (100 * part) / whole : 0}%`;
  return el("span", { class: "share" }, bar, el("span", { class: "text" }, percent(part, whole)));
}
