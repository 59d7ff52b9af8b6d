// How figures are known: the values of footprint/model/evidence.py, the strongest first.

import type { Evidence } from "./types";

const MEANINGS: [word: Evidence, meaning: string][] = [
  ["measured", "a counter or page bit of the kernel, as it stands"],
  ["derived", "exact arithmetic on measured figures"],
  ["predicted", "from ELF files, before running"],
  ["estimated", "a model with constants, or an assumption that is usually right"],
  ["virtual", "address space only: an upper bound"],
];
export const EVIDENCE = MEANINGS.map(([word]) => word);

/** Return the meaning of each kind of evidence that occurs. */
export function meanings(present: (word: Evidence) => boolean): [word: Evidence, meaning: string][] {
  return MEANINGS.filter(([word]) => present(word));
}

/** Return the weakest of some kinds of evidence. */
export function weakest(evidence: Iterable<Evidence>): Evidence {
  let found = 0;
  for (const one of evidence) found = Math.max(found, EVIDENCE.indexOf(one));
  return EVIDENCE[found];
}
