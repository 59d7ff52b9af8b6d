// The state of the report: what the reader chose, as texts by name. The fragment of the address holds it.

import { decoded, encoded } from "./names";
import { runInSlices } from "./scheduler";

/** What changes within this time is one step back. */
const STEP_MS = 300;

/** The watchers that one run of `remake` added: they end when it runs again. */
interface Scope {
  isOver: boolean;
  outer: Scope | null;
}

const ends = (scope: Scope | null): boolean => scope !== null && (scope.isOver || ends(scope.outer));

export class Store {
  #values = read(location.hash);
  #watchers: { name: string; changed: () => void; scope: Scope | null }[] = [];
  #scope: Scope | null = null;
  #timer = 0;
  #working = Promise.resolve();
  /** What tests look into, by the name of its section. */
  readonly parts: Record<string, unknown> = {};

  constructor() {
    addEventListener("popstate", () => {
      clearTimeout(this.#timer);
      const [old, now] = [this.#values, read(location.hash)];
      this.#values = now;
      for (const name of new Set([...old.keys(), ...now.keys()])) if (old.get(name) !== now.get(name)) this.#tell(name);
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
    this.#tell(name);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#save(), STEP_MS);
  }

  /** Call a listener after each change of a value. */
  watch(name: string, changed: () => void): void {
    this.#watchers.push({ name, changed, scope: this.#scope });
  }

  /**
   * Make a part of the report now and after each change of one of some values; what the former part watched is forgotten.
   * What `make` does later it does within `later`, which does nothing once the part is made anew.
   */
  remake(names: readonly string[], make: (later: (act: () => void) => void) => void): void {
    const outer = this.#scope;
    let inner: Scope | null = null;
    const again = () => {
      if (inner) inner.isOver = true;
      const own = (inner = { isOver: false, outer });
      this.#watchers = this.#watchers.filter((one) => !ends(one.scope));
      const within = (act: () => void) => {
        if (ends(own)) return;
        const before = this.#scope;
        this.#scope = own;
        act();
        this.#scope = before;
      };
      within(() => make(within));
    };
    for (const name of names) this.watch(name, again);
    again();
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
    const text = [...this.#values].map(([name, value]) => `${name}=${encoded(value).replaceAll("%2F", "/")}`).join("&");
    return `${location.href.split("#")[0]}${text && "#"}${text}`;
  }

  #tell(name: string): void {
    for (const one of [...this.#watchers]) if (one.name === name && !ends(one.scope)) one.changed();
  }

  #save(): void {
    // A frame without an origin of its own refuses: the report works without an address, too.
    try {
      if (this.link() !== location.href) history.pushState(null, "", this.link());
    } catch {}
  }
}

function read(fragment: string): Map<string, string> {
  const pairs = fragment.slice(1).split("&").filter((one) => one.includes("="));
  return new Map(pairs.map((one) => {
    const at = one.indexOf("=");
    return [one.slice(0, at), decoded(one.slice(at + 1))] as const;
  }));
}
