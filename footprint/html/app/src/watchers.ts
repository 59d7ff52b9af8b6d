// What is called after each change of a value of the state.

/** The watchers that one run of `remake` added: they end when it runs again. */
interface Scope {
  isOver: boolean;
  outer: Scope | null;
}

const ends = (scope: Scope | null): boolean => scope !== null && (scope.isOver || ends(scope.outer));

export class Watchers {
  #watchers: { name: string; changed: () => void; scope: Scope | null }[] = [];
  #scope: Scope | null = null;

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

  /** Call all that watch a value. */
  tell(name: string): void {
    for (const one of [...this.#watchers]) if (one.name === name && !ends(one.scope)) one.changed();
  }
}
