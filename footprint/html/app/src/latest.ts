// Long computations for an element, of which a newer one cancels the one before it.

import { nextTask, runInSlices } from "./scheduler";

export class Latest<Kind> {
  readonly #work = new Map<Kind, Generator>();

  /** The element is marked as busy while anything runs for it. */
  constructor(private readonly element: Element) {}

  /** Run a computation; a newer one of the same kind cancels it, and then the result is null. */
  async run<Result>(kind: Kind, work: Generator<void, Result>): Promise<Result | null> {
    this.#work.set(kind, work);
    this.element.setAttribute("aria-busy", "true");
    const isWanted = () => this.#work.get(kind) === work;
    const found = await runInSlices(work, isWanted);
    if (!isWanted()) return null;
    this.cancel(kind);
    return found;
  }

  cancel(kind: Kind): void {
    this.#work.delete(kind);
    if (!this.#work.size) this.element.removeAttribute("aria-busy");
  }

  /** Wait until nothing is running. */
  async settled(): Promise<void> {
    while (this.#work.size) await nextTask();
  }
}
