// How figures are known.

import type { Evidence } from "./types";
import { EVIDENCE as MEANINGS } from "./words";

/** The kinds of evidence, the strongest first. */
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
