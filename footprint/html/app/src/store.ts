// The state of the report: what the reader chose, as texts by name. The fragment of the address holds it.

import { addressOf, valuesIn } from "./address";
import { runInSlices } from "./scheduler";
import { Watchers } from "./watchers";

/** What changes within this time is one step back. */
const STEP_MS = 300;

export class Store {
  #values = valuesIn(location.hash);
  readonly #watchers = new Watchers();
  #timer = 0;
  #working = Promise.resolve();
  /** What tests look into, by the name of its section. */
  readonly parts: Record<string, unknown> = {};

  constructor() {
    addEventListener("popstate", () => {
      clearTimeout(this.#timer);
      const [old, now] = [this.#values, valuesIn(location.hash)];
      this.#values = now;
      for (const name of new Set([...old.keys(), ...now.keys()])) if (old.get(name) !== now.get(name)) this.#watchers.tell(name);
    });
  }

  get(name: string): string | null {
    return this.#values.get(name) ?? null;
  }

  /** Set a value; null is the default of the report, and is not part of the address. */
  set(name: string, value: string | null): void {
    if (this.get(name) === value) return;
    if (value === null) this.#values.delete(name);
    else this.#values.set(name, value);
    this.#watchers.tell(name);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#save(), STEP_MS);
  }

  /** Call a listener after each change of a value. */
  watch(name: string, changed: () => void): void {
    this.#watchers.watch(name, changed);
  }

  /** Make a part of the report now and after each change of one of some values: see `Watchers`. */
  remake(names: readonly string[], make: (later: (act: () => void) => void) => void): void {
    this.#watchers.remake(names, make);
  }

  /** Run a long computation in slices, and use its result; the element is marked as busy until then. */
  work<T>(work: Generator<void, T>, element: Element, use: (result: T) => void): void {
    element.setAttribute("aria-busy", "true");
    this.#working = runInSlices(work, () => true).then((result) => {
      element.removeAttribute("aria-busy");
      use(result!);
    });
  }

  /** Wait until the last computation has ended. */
  settled(): Promise<void> {
    return this.#working;
  }

  /** Return the address of the report with this state. */
  link(): string {
    return addressOf(this.#values);
  }

  #save(): void {
    // A frame without an origin of its own refuses: the report works without an address, too.
    try {
      if (this.link() !== location.href) history.pushState(null, "", this.link());
    } catch {}
  }
}
