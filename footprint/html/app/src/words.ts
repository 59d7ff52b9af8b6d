// The words that the report shares with Python. `make schema` writes this file.

import type { Basis, Evidence, MemoryKind, Model } from "./types";

/** The kinds of evidence and their meanings, the strongest first. */
export const EVIDENCE: [word: Evidence, text: string][] = [
  ["measured", "a kernel counter or page bit, as it stands"],
  ["derived", "exact arithmetic on measured figures"],
  ["predicted", "from ELF files, before running"],
  ["estimated", "a model with constants, or an assumption that is usually right"],
  ["virtual", "address space only: an upper bound"],
];

/** The kinds of memory. */
export const KINDS: MemoryKind[] = [
  "data",
  "bss",
  "relro",
  "text",
  "tls",
  "file",
  "heap",
  "stack",
  "anonymous",
  "shared",
  "kernel",
];

/** The words for one of N and for all of them. */
export const NOUNS: Record<Model, [string, string]> = {
  "exec": ["process", "processes"],
  "fork": ["worker", "workers"],
  "threads": ["thread", "threads"],
};

/** The words that follow the cost of one in a sentence. */
export const PHRASES: Record<Basis, string> = {
  "per process": "",
  "started copy": ", with what it shares now",
  "everything rewritten": " at most, if everything is rewritten",
  "private": " of private memory, kernel memory not counted",
  "mapped writable": " of mapped writable memory, an upper bound",
};

/** The states of a page and their meanings; the number of a state is its place. */
export const PAGE_STATES: [word: string, text: string][] = [
  ["untouched", "not in memory"],
  ["not private", "not private; whether it is in memory is not known"],
  ["shared", "in memory, and perhaps of others too"],
  ["private", "only this process holds it"],
  ["relocated", "private, and written by relocations at each start"],
  ["swapped", "private, on a swap device"],
  ["unknown", "page bits could not be read"],
];
