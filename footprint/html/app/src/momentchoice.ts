// The moment of a heap profile that the reader chose, and the one that it is compared with.

import type { Moment } from "./data";
import { el } from "./dom";
import type { Amount } from "./amounts";
import { printable } from "./names";
import type { Profile } from "./profile";
import type { Store } from "./store";
import { formatTime } from "./times";

export interface MomentChoice {
  current: Moment | null;
  before: Moment | null;
}

/** Read the choice from the state: the last and the first moment that the user named, or the snapshot that the profile shows. */
export function chosenMoments({ row, moments, named }: Profile, store: Store): MomentChoice {
  const at = (moment: string | number | null) => moments.find((one) => String(one.moment) === String(moment)) ?? null;
  const last = named.length > 1 ? named[named.length - 1] : row.snapshot;
  return {
    current: at(store.get("moment")) ?? at(last) ?? moments[0] ?? null,
    before: at(store.get("before") ?? (named.length > 1 ? named[0] : null)),
  };
}

/** Return what a moment is called. */
export function momentName({ row, snapshots }: Profile, { moment }: Moment): string {
  if (typeof moment === "string") return `${printable(moment)} over the whole run`;
  const one = snapshots.find((snapshot) => snapshot.number === moment);
  const time = one && one.time !== null ? ` at ${formatTime(one.time, row.time_unit ?? "")}` : "";
  return `snapshot ${moment}${time}${one?.is_peak ? ", the peak" : ""}`;
}

/** Make the two lists of moments, and their labels. */
export function momentLists(profile: Profile, store: Store, amount: Amount, { current, before }: MomentChoice): HTMLElement[] {
  const { moments } = profile;
  const list = (id: string, chosen: Moment | null, label: string, textOf: (one: Moment) => string, none: HTMLElement[]) => {
    const select = el("select", { id, "aria-label": label, onchange: () => {
      const one = moments[select.selectedIndex - none.length];
      store.set(id, one ? String(one.moment) : "none");
    } }, ...none, ...moments.map((one) => el("option", { selected: one === chosen }, textOf(one))));
    return [el("label", { for: id }, label), select];
  };
  const nameOf = (one: Moment) => momentName(profile, one);
  const found = list("moment", current, "Moment", (one) => `${nameOf(one)}: ${amount(one.bytes)}`, []);
  return moments.length > 1 ? [...found, ...list("before", before, "Compared with", nameOf, [el("option", {}, "no other moment")])] : found;
}
