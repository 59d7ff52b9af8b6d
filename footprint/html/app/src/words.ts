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

/** What figures are called, in their order. */
export const TITLES: Record<string, string> = {
  "per_process_bytes": "per process",
  "private_bytes": "private memory",
  "kernel_bytes": "kernel memory",
  "shared_once_bytes": "shared, once per machine",
  "shared_with_relatives_bytes": "COW-shared",
  "mapped_writable_bytes": "mapped writable",
  "mapped_shared_bytes": "mapped shared",
  "mapped_bytes": "mapped",
  "floor_bytes": "startup minimum",
  "ceiling_bytes": "startup maximum",
  "per_group_bytes": "together",
  "per_worker_bytes": "one more worker",
  "shared_between_bytes": "shared between them",
  "process_count": "processes",
  "peak_bytes": "peak",
  "usual_most_bytes": "95 % of the time",
  "hourly_growth_bytes": "growth in an hour",
  "most_process_count": "processes at a time",
  "total_at_count_bytes": "cost of N processes",
  "mapping_count": "mappings",
  "library_count": "files",
  "tls_bytes": "thread-local variables",
  "start_relocation_count": "relocations at start",
  "start_lookup_count": "symbol lookups at start",
  "start_failed_opens": "failed opens at start",
  "start_page_faults": "page faults at start",
  "start_cpu_seconds": "processor time of a start",
  "retained_bytes": "retained",
  "saving_bytes": "saving",
  "waste_bytes": "waste",
  "swapped_bytes": "swapped out",
  "lazy_free_bytes": "free for the kernel to take",
  "locked_bytes": "locked",
  "huge_page_bytes": "in transparent huge pages",
  "ksm_bytes": "merged by KSM",
  "hugetlb_private_bytes": "huge pages, private",
  "hugetlb_shared_bytes": "huge pages, shared",
  "own_shared_bytes": "shared memory of its own",
};

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
