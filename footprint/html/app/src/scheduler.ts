// Long computations in slices of time: between two slices the browser paints and handles input.

/** The length of one slice: with the work of the browser after it, it is too short to be noticed. */
const SLICE_MS = 10;

/** Wait until the browser has painted and handled input. */
export function nextTask(): Promise<void> {
  return new Promise((done) => setTimeout(done));
}

/** Run a generator in slices. Returns its result, or null as soon as `isWanted` returns false between two slices. */
export async function runInSlices<T>(work: Generator<void, T>, isWanted: () => boolean): Promise<T | null> {
  let end = performance.now() + SLICE_MS;
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() < end) continue;
    await nextTask();
    if (!isWanted()) return null;
    end = performance.now() + SLICE_MS;
  }
}

/** Run a generator to its end without a pause. */
export function runAtOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}
