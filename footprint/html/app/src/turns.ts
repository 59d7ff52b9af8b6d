// Long work done in turns: between them the browser paints and answers.

/** How long one turn is: with what the browser does behind it, well below what is felt. */
const TURN_MS = 10;

/** Let the browser paint and answer. */
export function pause(): Promise<void> {
  return new Promise((done) => setTimeout(done));
}

/** Do work that yields now and then, in turns. Gives what it returns, or null where it was no longer wanted. */
export async function inTurns<T>(work: Generator<void, T>, isWanted: () => boolean): Promise<T | null> {
  let end = performance.now() + TURN_MS;
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() < end) continue;
    await pause();
    if (!isWanted()) return null;
    end = performance.now() + TURN_MS;
  }
}

/** Do such work at once. */
export function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}
