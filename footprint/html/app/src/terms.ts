// What N cost: the only arithmetic on figures in the report. The JSON says of each figure who pays it.

/** A figure of one process or group; `is_once` says that all of the N pay it once together, null that it has no sum over N. The kernel drops page cache where memory is short. */
export interface Paid {
  size_bytes: number;
  is_once: boolean | null;
  is_page_cache?: boolean;
}

/** Return figures that each of the N pays. */
export function paidByEach(...sizes: number[]): Paid[] {
  return sizes.map((size_bytes) => ({ size_bytes, is_once: false }));
}

/** Compute what `count` cost together, nothing for none; null where a figure has no sum. */
export function atCount(terms: readonly Paid[], count: bigint): bigint | null {
  let sum = 0n;
  for (const { size_bytes, is_once } of terms) {
    if (is_once === null) return null;
    sum += is_once ? BigInt(size_bytes) : BigInt(size_bytes) * count;
  }
  return count ? sum : 0n;
}

/** Compute how many fit into a memory; null where one more costs nothing, so that any number fits. */
export function fitting(terms: readonly Paid[], memory: bigint): bigint | null {
  const once = atCount(terms.filter((term) => term.is_once && !term.is_page_cache), 1n) ?? 0n;
  const each = atCount(terms.filter((term) => !term.is_once), 1n) ?? 0n;
  if (each <= 0n) return null;
  return memory > once ? (memory - once) / each : 0n;
}
