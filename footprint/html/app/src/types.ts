// The JSON answers that the report shows. `make schema` writes this file from the types in Python.

import type { Rows } from "./table";

export type Attribution = "program headers" | "name" | "allocator" | "thread vector" | "stack pointer" | "shape" | "adjacency" | "allocator profile" | "none";
export type Basis = "per process" | "started copy" | "everything rewritten" | "private" | "mapped writable";
export type Confidence = "proof" | "high" | "medium" | "low" | "blocked";
export type Counted = "heap" | "pages" | "copies" | "events";
export type Evidence = "measured" | "derived" | "predicted" | "estimated" | "virtual";
export type FigureUnit = "bytes" | "things" | "microseconds";
export type GrowthKind = "grows" | "steady" | "warmed-up" | "saw-tooth" | "shrinks" | "unknown";
export type LimitUnit = "bytes" | "tasks";
export type MemberStatus = "came" | "went" | "changed" | "same";
export type MemoryKind = "data" | "bss" | "relro" | "text" | "tls" | "file" | "heap" | "stack" | "anonymous" | "shared" | "kernel";
export type Model = "exec" | "fork" | "threads";
export type Part = "heap" | "runtime_heap" | "objects" | "stacks" | "other" | "shared_between" | "own_shared" | "kernel";
export type RowStatus = "changed" | "added" | "removed" | "moved" | "renamed" | "touched" | "shifted";
export type RunFailureKind = "signal" | "exit" | "moment" | "child" | "memory";
export type WatchGapKind = "too-short" | "lower-bound" | "no-audit" | "cut" | "not-watched";

/** The heap of a process, read from the structures of its allocator in its memory. Sizes are of addresses, touched or not, except where they say `private`. `held_bytes` are `live_bytes`, `overhead_bytes` and `free_bytes` together. */
export interface AllocatorAccount {
  /** Whose structures were read: `glibc` or `musl`. */
  allocator: string;
  /** How many arenas it has; musl has one. */
  arena_count: number;
  /** The number of blocks that the program has. */
  live_block_count: number;
  /** The room in these blocks: what malloc_usable_size(3) returns of them. With musl it is what the program asked for, with glibc this is rounded up to sizes that the allocator has. */
  live_bytes: number;
  /** What the allocator has for itself: a header before each block, and its structures. */
  overhead_bytes: number;
  /** What it has from the kernel and the program does not use. */
  free_bytes: number;
  /** What it has from the kernel. */
  held_bytes: number;
  /** The part of `free_bytes` in blocks that threads or fastbins keep for requests of the same size. mallinfo2(3) counts those of threads as in use. musl keeps none. */
  cached_bytes: number;
  /** The number of large blocks that it maps alone; they are live. */
  mapped_block_count: number;
  /** The size of their mappings, as part of `held_bytes`. */
  mapped_block_bytes: number;
  /** The part of `free_bytes` that is in private memory: the rows `[free]` of the ledger. */
  free_private_bytes: number;
  /** The private memory in whole free pages that malloc_trim(3) returns to the kernel; musl has no such function. */
  trimmable_bytes: number;
  /** What could not be read and why, in sentences: that memory is in no figure of the account. */
  unread: string[];
  /** When a capture read it, as `2026-11-27T19:40:00Z`: the ledger then has no rows of it. Null where the process was audited while it ran. */
  captured_at: string | null;
}

/** An allocation function: it only passes memory on, and its callers are charged. */
export interface AllocatorRow {
  /** The profile. */
  file: string;
  /** The rule by which it is one. */
  rule: string;
  /** The path of the object that it is in, or in brackets why it is not known. */
  owner: string;
  /** Its linker name; null where it has none. */
  symbol: string | null;
  /** The name to show; in brackets the address where it starts in its file, or why it has no name. */
  name: string;
  /** The bytes of the stacks that it stands in; a stack counts for each of its allocation functions. */
  bytes: number;
  /** The blocks; null where the profile does not count them. */
  block_count: number | null;
}

/** The audit of one process or program. The `bytes` of all rows of `ledger` but those of kind `kernel` add up to `private_bytes`, those of kind `kernel` to `kernel_bytes`. `mapped_bytes` adds up to `mapped_bytes`, over the rows with `is_writable` to `mapped_writable_bytes`; `shared_bytes` adds up to `shared_once_bytes`. */
export interface AuditAnswer {
  /** The name and number of the format. Added members keep the number, a change of meaning raises it. */
  schema: "footprint/1";
  /** The program that wrote the answer. */
  tool: Tool;
  /** The verb that gave the answer. */
  verb: "audit";
  /** The `kernel` release and the `machine` of the host; empty where they are not known or do not matter. */
  host: Record<string, string>;
  /** The process or program. */
  target: ProcessTarget;
  /** The figures of the whole. */
  totals: ProcessTotals;
  /** The rows that add up to the totals. */
  ledger: Rows<Row>;
  /** The same but for kind `kernel`, by source file, folder or component; the member is absent without `--by file`, `dir` or `component`. */
  sources?: Rows<SourceCost>;
  /** What the cost is made of, by kind of memory: the `bytes` add up to `per_process_bytes`, or where that is not known to `private_bytes`. The member is absent where only virtual sizes are known. */
  parts?: Rows<KindPart>;
  /** The cost of as many processes as were asked about. */
  projection: Projection;
  /** What the process could do without. */
  findings: Rows<Finding>;
  /** The files that the names of stripped owners are from. */
  debug_files: Rows<DebugFile>;
  /** The rules that were run; empty where none was, and in files of earlier versions. */
  searched_rules: Rows<SearchedRule>;
  /** The files of the process in load order, with what leaves with each; empty for a process that was neither searched for findings nor saved in a file. */
  objects: Rows<ObjectCost>;
  /** What the heap is made of, by an allocator profile; null where none was joined. */
  heap_account: HeapAccount | null;
  /** The heap as the allocator of the process accounts for it; null where it was not read. */
  allocator: AllocatorAccount | null;
  /** The pages of objects one by one, for the report of a saved audit. The member is absent where no file of an object could be read, in what `run` saves, and in baselines. */
  page_maps?: Rows<PageMapRow>;
  /** The mappings with private bytes, of each owner, the largest first: at most 1,000. What an owner has in others is one row for each kind of memory, so the `bytes` and the `mapped_bytes` of an owner add up to those of its rows in `ledger`, if no allocator profile was joined. The member is absent of a program, where private bytes are not known, in what `run` saves, and in baselines. */
  mappings?: Rows<MappingCost>;
  /** What the files in memory cost that it maps or holds open. Their `own_bytes` add up to `own_shared_bytes`. The member is absent where there is none. */
  memory_files?: Rows<MemoryFileCost>;
  /** What the reader of the figures must know. */
  notes: Rows<Note>;
  /** The findings that fail the answer; the member is absent without `--fail-on`. */
  failed?: Rows<FailedFinding>;
  /** How the program failed that was run for this audit; the member is absent if it did not, and in what `run` saves, where it is in `run`. */
  run_failures?: Rows<RunFailure>;
}

/** One limit of the budget file. */
export interface BudgetResult {
  /** Its key in the file. */
  key: string;
  /** The value of the audit; of a limit of growth of findings, what the baseline has not of them. */
  value: number;
  /** The largest value that passes. */
  limit: number;
  /** What both count. */
  unit: FigureUnit;
  /** Whether the value is larger than the limit. */
  is_exceeded: boolean;
  /** Whether it is exceeded, surely and without a waiver that holds. */
  fails: boolean;
  /** The value of the baseline, where the limit is one of growth, and 0 for findings; else null. */
  grew_from: number | null;
  /** The largest parts of the value, or of its growth; at most three. */
  contributors: Contributor[];
  /** Whether the contributors are what grew since the baseline. */
  is_growth: boolean;
  /** The waiver of the budget; null where there is none. */
  waiver: Waiver | null;
  /** Whether the starts of both runs overlap, so that the growth may be chance. */
  is_noise: boolean;
  /** What else there is to know; often empty. */
  remark: string;
  /** The line of the file; null where it is not known. */
  line: number | null;
}

/** One node of a call tree; names are cut at 8,192 characters. */
export interface CallRow {
  /** The profile. */
  file: string;
  /** The number of the node; a node stands after its parent. */
  node: number;
  /** The number of the node that it is called from, or that it calls; 0 for the root, which has no row. */
  parent: number;
  /** The path of the object that the function is in, or in brackets why it is not known. */
  owner: string;
  /** The linker name of the function; null where it has none. */
  symbol: string | null;
  /** The name to show; in brackets the address where it starts in its file, or why it has no name. */
  name: string;
  /** The bytes of the node and of all nodes below it. */
  bytes: number;
  /** The blocks; null where the profile does not count them. */
  block_count: number | null;
}

/** A group of processes beside the counters of their control group. */
export interface CgroupComparison {
  /** The path of the control group. */
  path: string;
  /** 1 or 2. */
  version: number;
  /** The charge of the kernel; the `charged_bytes` of all rows add up to it. */
  total_bytes: number;
  /** The part of the kernel memory for kernel objects; null where the kernel does not tell. */
  slab_bytes: number | null;
  /** The kinds of memory. */
  rows: Rows<CgroupRow>;
}

/** One kind of memory: what the processes of a control group hold, and what the kernel charges to it. */
export interface CgroupRow {
  /** The kind. */
  name: string;
  /** What the processes hold; null where no process shows it. */
  audited_bytes: number | null;
  /** What is charged. */
  charged_bytes: number;
  /** What is charged beyond what the processes hold. */
  difference_bytes: number;
  /** What can make the difference. */
  cause: string;
}

/** The budgets of a process, program or group, and whether they hold. */
export interface CheckAnswer {
  /** The name and number of the format. Added members keep the number, a change of meaning raises it. */
  schema: "footprint/1";
  /** The program that wrote the answer. */
  tool: Tool;
  /** The verb that gave the answer. */
  verb: "check";
  /** The `kernel` release and the `machine` of the host; empty where they are not known or do not matter. */
  host: Record<string, string>;
  /** The process, program or group. */
  target: ProcessTarget;
  /** The budget file. */
  budget_file: string;
  /** The number of processes or groups that `total_at_count_bytes` is for. */
  count: number;
  /** The figures of the whole; the member is absent for a group. */
  totals?: ProcessTotals;
  /** The figures of all processes of a group together; the member is absent for a single process. */
  group?: GroupTotals;
  /** The number of budgets that fail. */
  checks_failed: number;
  /** The result in a sentence: the limit that is exceeded by its largest part, and what makes it so. */
  verdict: string;
  /** The limits, those that fail first, and of these the one that is exceeded by its largest part. */
  budgets: Rows<BudgetResult>;
  /** The libraries that are new since the baseline, with what each brought. */
  roots: Rows<NewRoot>;
  /** The variables that are new or grew by 1 KiB or more since the baseline, with their lines. */
  grown_variables: Rows<RowChange>;
  /** What the reader of the figures must know. */
  notes: Rows<Note>;
}

/** A part of the value of a budget. */
export interface Contributor {
  /** The owner, variable or finding. */
  name: string;
  /** Its bytes, or how much it grew. */
  size_bytes: number;
}

/** The change of what N cost together, as the audits of both sides have it. */
export interface CostChange {
  /** The change of what each of the N pays. */
  each_delta_bytes: number;
  /** The change of what all of them pay once. */
  once_delta_bytes: number;
  /** The change for `count` processes or groups. */
  delta_at_count_bytes: number;
}

/** The file that has the symbols of a stripped object. */
export interface DebugFile {
  /** The object, as the ledger has it. */
  owner: string;
  /** The file that the names of its variables are from. */
  file: string;
}

/** What changed between two audits. Where only virtual sizes are known, `old_bytes` is null and `delta_bytes` is the difference of `old_writable_bytes` and `new_writable_bytes`. The `delta_bytes` of `diff` add up to those of `private_bytes` and `kernel_bytes`, or of `mapped_writable_bytes`; `mapped_delta_bytes` add up to that of `mapped_bytes`. */
export interface DiffAnswer {
  /** The name and number of the format. Added members keep the number, a change of meaning raises it. */
  schema: "footprint/1";
  /** The program that wrote the answer. */
  tool: Tool;
  /** The verb that gave the answer. */
  verb: "diff";
  /** The `kernel` release and the `machine` of the host; empty where they are not known or do not matter. */
  host: Record<string, string>;
  /** The two audits. */
  target: DiffTarget;
  /** The number of processes or groups that the changes are multiplied by. */
  count: number;
  /** The change of what so many cost together; null where one of both does not tell it, or where they start in other ways. */
  cost: CostChange | null;
  /** The figures of the whole. */
  figures: Rows<FigureChange>;
  /** The libraries that are new because an object needs them now, the one that retains most first; `came_with` of `owner_changes` names what each of them brought. */
  roots: Rows<NewRoot>;
  /** The owners that differ. */
  owner_changes: Rows<OwnerChange>;
  /** The processes of both groups, those that came first, then those that went; empty for two processes. Their `delta_bytes` add up to that of `private_bytes`. */
  members: Rows<MemberChange>;
  /** The rows that differ. */
  diff: Rows<RowChange>;
  /** The number of rows that do not differ. */
  same_count: number;
  /** The rules that both were audited for; findings of others are not compared. */
  compared_rules: string[];
  /** The findings that only the new audit has, of rules that both were audited for. */
  new_findings: Rows<Finding>;
  /** The findings that only the old audit has, of rules that both were audited for. */
  fixed_findings: Rows<Finding>;
  /** The notes of both audits. Where they differ on one subject, `, before` or `, now` stands behind it. */
  notes: Rows<Note>;
}

/** The two audits that are compared. */
export interface DiffTarget {
  /** The process, program or group before. */
  old: ProcessTarget;
  /** The process, program or group now. */
  new: ProcessTarget;
}

/** A finding that fails the answer, as `--fail-on` asks. */
export interface FailedFinding {
  /** The rule that found it. */
  rule: string;
  /** The object, variable or function that it is about. */
  subject: string;
  /** How sure it is. */
  confidence: Confidence;
}

/** One figure of the whole, before and now. */
export interface FigureChange {
  /** The figure, as `totals` of an audit or `group` of a group has it; `per_worker_bytes` of a group. */
  name: string;
  /** The value before; null where it is not known. */
  old_bytes: number | null;
  /** The value now; null where it is not known. */
  new_bytes: number | null;
  /** The difference; null where one of them is not known. */
  delta_bytes: number | null;
  /** The difference for `count` processes or groups; null where it has no sum. */
  delta_at_count_bytes: number | null;
  /** Whether all of N processes pay it once together, and not each of them; null where it has no sum. */
  is_once: boolean | null;
  /** How the value before is known. */
  old_evidence: Evidence;
  /** How the value now is known. */
  new_evidence: Evidence;
  /** Whether the spreads of the starts overlap, so that nothing need have changed; null where measured once. */
  is_noise: boolean | null;
}

/** One thing that costs memory and could go. */
export interface Finding {
  /** The rule that found it, such as `unused-library`. */
  rule: string;
  /** The kind of finding, among those of the rule. */
  kind: string;
  /** The object, variable or function that the finding is about. */
  subject: string;
  /** What was found, in one sentence. */
  message: string;
  /** The private memory that each process saves, of a group all members together; 0 where the remedy alone saves nothing. */
  saving_bytes: number;
  /** The same for as many processes or groups as were asked about. */
  saving_at_count_bytes: number;
  /** The part of `saving_bytes` that no other finding of the table frees; 0 where the remedy is blocked. These parts add up to the most that all remedies save together. */
  added_bytes: number;
  /** The private memory that each further thread of a process saves, in addition to `saving_bytes`. */
  thread_bytes: number;
  /** The processor time that each start saves, estimated, in microseconds. */
  saving_us: number;
  /** Whether each process saves it, or each thread, of which a process has at least one. */
  saving_per: "process" | "thread";
  /** The size of a variable that may be smaller, or of its copies; null where the finding is about none. */
  size_bytes: number | null;
  /** The part of the subject that is private in the live process; null where that is not known. */
  private_bytes: number | null;
  /** How sure the finding is; `blocked` means that the remedy is not available as things are. */
  confidence: Confidence;
  /** Why the finding is as sure as it is. */
  reasons: string[];
  /** What to do. */
  remedy: string;
  /** The paths of the objects that leave the process with it. */
  leaves: string[];
  /** The path of the object to build in another way; null where there is none, or several. */
  object: string | null;
  /** The place in the source code; null where it is not known. */
  location: SourceLocation | null;
  /** The number of processes of a group that have it; null for a finding of one process. */
  member_count: number | null;
}

/** A limit on how many fit. */
export interface FitLimit {
  /** What the limit is, such as `pid_max` or `memory.max of /system.slice/nginx.service`. */
  name: string;
  /** What it counts. */
  unit: LimitUnit;
  /** The limit. */
  most: number;
  /** What is not available: the reserve, or the tasks of others. */
  taken: number;
  /** What one process, or one group, takes of it. */
  each: number;
  /** How many fit. */
  count: number;
  /** How many fit beside the page cache of their files. More must read from the disk again what the kernel drops, and start slowly. */
  beside_cache_count: number;
}

/** Where the bytes of a row were before. */
export interface FormerPlace {
  /** The owner. */
  owner: string;
  /** The section; null where there was none. */
  section: string | null;
  /** The linker name, or the name to show; null where there was none. */
  symbol: string | null;
}

/** The bytes that one function asked for. */
export interface FunctionBytes {
  /** The profile. */
  file: string;
  /** The path of the object that the function is in, or in brackets why it is not known. */
  owner: string;
  /** The linker name of the function; null where it has none. */
  symbol: string | null;
  /** The name to show; in brackets the address where it starts in its file, or why it has no name. */
  name: string;
  /** The bytes. */
  bytes: number;
  /** The blocks; null where the profile does not count them. */
  block_count: number | null;
}

/** What a profile counted over the whole run of one function; null where it does not count something. */
export interface FunctionTotalsRow {
  /** The profile. */
  file: string;
  /** The path of the object that the function is in, or in brackets why it is not known. */
  owner: string;
  /** The linker name of the function; null where it has none. */
  symbol: string | null;
  /** The name to show; in brackets the address where it starts in its file, or why it has no name. */
  name: string;
  /** All bytes that it asked for. */
  allocated_bytes: number | null;
  /** The number of blocks. */
  allocated_blocks: number | null;
  /** Blocks that were freed right after they were allocated: between the two was no other allocation and no other free. */
  temporary_blocks: number | null;
  /** How long a block lived on average, in the unit of time of the profile; blocks that were not freed lived until the end. */
  lifetime: number | null;
  /** The bytes that were read in its blocks; a byte counts as often as it was read. */
  read_bytes: number | null;
  /** The bytes that were written in its blocks, likewise. */
  written_bytes: number | null;
  /** The bytes that were not freed when the program ended. */
  leaked_bytes: number | null;
  /** The number of these blocks. */
  leaked_blocks: number | null;
}

/** The audit of several processes as one. The `bytes` of all rows of `ledger` but those of kind `kernel` add up to `private_bytes` of the group, those of kind `kernel` to `kernel_bytes`; `shared_bytes` of rows is null. */
export interface GroupAnswer {
  /** The name and number of the format. Added members keep the number, a change of meaning raises it. */
  schema: "footprint/1";
  /** The program that wrote the answer. */
  tool: Tool;
  /** The verb that gave the answer. */
  verb: "audit";
  /** The `kernel` release and the `machine` of the host; empty where they are not known or do not matter. */
  host: Record<string, string>;
  /** The processes. */
  target: GroupTarget;
  /** The figures of all together. */
  group: GroupTotals;
  /** The processes, each with its own figures. */
  processes: Rows<GroupProcess>;
  /** The processes that are alike, the workers first. */
  classes: Rows<ProcessClass>;
  /** What one more worker and one more group cost, and as many as were asked about; null where unknown. */
  projection: GroupProjection | null;
  /** The counters of the control group that was named; null where none was. */
  cgroup: CgroupComparison | null;
  /** The rows of all processes, those of one owner, section and symbol added up. */
  ledger: Rows<Row>;
  /** The same but for kind `kernel`, by source file, folder or component; the member is absent without `--by file`, `dir` or `component`. */
  sources?: Rows<SourceCost>;
  /** What the group costs by kind of memory: the `bytes` add up to `per_group_bytes`, or where that is not known to `private_bytes`. The member is absent where only virtual sizes are known. */
  parts?: Rows<KindPart>;
  /** What the processes could do without, each once. */
  findings: Rows<Finding>;
  /** The rules that were run for all processes that were searched; empty where none was. */
  searched_rules: Rows<SearchedRule>;
  /** The files of the processes, each once with the sums over them; empty for processes that were neither searched for findings nor saved in a file. */
  objects: Rows<ObjectCost>;
  /** The files that the names of stripped owners are from. */
  debug_files: Rows<DebugFile>;
  /** What the files in memory cost that the processes map or hold open, each once. Their `own_bytes` add up to `own_shared_bytes`. The member is absent where there is none. */
  memory_files?: Rows<MemoryFileCost>;
  /** What the reader of the figures must know. */
  notes: Rows<Note>;
  /** The findings that fail the answer; the member is absent without `--fail-on`. */
  failed?: Rows<FailedFinding>;
}

/** One process of the group. */
export interface GroupProcess {
  /** The target, as the user named it. */
  name: string;
  /** The process; null where it is not known, and for a group. */
  pid: number | null;
  /** The command line or the name of the process, of a group that of the first. */
  command: string;
  /** What was read: `smaps`, `pmap -d`, `prediction`, ... */
  source: string;
  /** Whether it was read from a running process. */
  is_live: boolean;
  /** The number of mappings. */
  mapping_count: number;
  /** The size of a page. */
  page_bytes: number;
  /** Its own figures. */
  totals: ProcessTotals;
}

/** The cost of `count` groups, each with `worker_count` workers. */
export interface GroupProjection {
  /** The number of groups. */
  count: number;
  /** The workers of each group. */
  worker_count: number;
  /** The marginal worker: what one more worker in a group costs. */
  per_worker_bytes: number;
  /** The marginal group: what one more group of so many workers costs. */
  per_group_bytes: number;
  /** The files that all groups map, paid once. */
  shared_once_bytes: number;
  /** `shared_once_bytes + count * per_group_bytes`. */
  total_bytes: number;
  /** How the total is known. */
  evidence: Evidence;
  /** How the workers start. */
  model: Model;
  /** The parts of the cost of a group, and what all groups pay once. */
  terms: Rows<Term>;
  /** The memory that was asked to be filled, where `count` is how many groups fit; else null. */
  memory_bytes: number | null;
  /** The limits on how many groups fit, the one that is hit first at the beginning. */
  limits: Rows<FitLimit>;
  /** The limits on how many workers fit into a single group, in the same order. */
  worker_limits: Rows<FitLimit>;
}

/** The processes of the group. */
export interface GroupTarget {
  /** The target, as the user named it. */
  name: string;
  /** The processes; null for one that is not known. */
  pids: (number | null)[];
  /** The threads of all processes. */
  thread_count: number;
}

/** The figures of several processes together; null where the input cannot tell. */
export interface GroupTotals {
  /** Anonymous memory, resident or swapped, that only one process holds. */
  private_bytes: number | null;
  /** Page tables, kernel stacks and kernel objects of the process. */
  kernel_bytes: number | null;
  /** Anonymous memory that several processes of the group have shared since a fork, counted once. */
  shared_between_bytes: number | null;
  /** Part of `shared_once_bytes` and of `per_process_bytes`: files in memory that nobody else keeps (memfd, shared anonymous memory, SysV, files of tmpfs), with all that they hold, and mapped buffers of the kernel. */
  own_shared_bytes: number | null;
  /** What one more group of these processes costs: their private memory, the memory that they share among themselves, the shared memory that they made, and their kernel memory. */
  per_group_bytes: number | null;
  /** Resident pages of files and of shared memory: the machine pays them once, however many processes map them. */
  shared_once_bytes: number | null;
  /** How each figure that is not null is known. */
  evidence: Partial<Record<"private_bytes" | "kernel_bytes" | "shared_between_bytes" | "own_shared_bytes" | "per_group_bytes" | "shared_once_bytes", Evidence>>;
}

/** How the memory of one function grew. */
export interface GrowthRow {
  /** The profile. */
  file: string;
  /** The path of the object that the function is in, or in brackets why it is not known. */
  owner: string;
  /** The linker name of the function; null where it has none. */
  symbol: string | null;
  /** The name to show; in brackets the address where it starts in its file, or why it has no name. */
  name: string;
  /** The number of the first snapshot with a call tree. */
  first_snapshot: number;
  /** Its bytes then. */
  first_bytes: number;
  /** The number of the snapshot that the other tables are about. */
  last_snapshot: number;
  /** Its bytes then. */
  last_bytes: number;
  /** The difference. */
  growth_bytes: number;
  /** The number of the snapshot after which it grew most until the next one with a call tree. */
  step_first_snapshot: number;
  /** The number of this next one. */
  step_last_snapshot: number;
  /** By how much it grew between them. */
  step_bytes: number;
}

/** What the heap of a process is made of, by an allocator profile of another run. `held_bytes` and `apart_bytes` together are `live_bytes`, `extra_bytes`, `free_bytes` and `difference_bytes` together. */
export interface HeapAccount {
  /** The profile, as the user named it. */
  file: string;
  /** The profiler that wrote it. */
  format: string;
  /** The program that was profiled; null where the profile does not say. */
  command: string | null;
  /** The number of the snapshot that was taken. */
  snapshot: number;
  /** The number of snapshots in the profile. */
  snapshot_count: number;
  /** Whether the snapshot is the peak of the profile: the one that it marks, unless another is larger. */
  is_peak: boolean;
  /** Whether the last snapshot of the profile is the end of the run: massif writes none there. */
  has_end: boolean;
  /** The bytes that the program had asked for and not freed. */
  live_bytes: number;
  /** The bytes that the allocator used besides: by a model of its block sizes, or else as the profile has them; null where neither is known. */
  extra_bytes: number | null;
  /** Whether that is the model. */
  is_extra_modelled: boolean;
  /** The allocator of the process; null where it is unknown. */
  allocator: string | null;
  /** The most that both were up to the snapshot. */
  peak_bytes: number;
  /** The heap and the arenas of the process: private memory, or the mapped size where only virtual sizes are known; null for a profile of address space, which is joined with nothing. */
  held_bytes: number | null;
  /** The nameless memory that was taken for blocks which the allocator maps one by one. */
  apart_bytes: number;
  /** The memory that the allocator has and the program does not use: read from the process, or else what the process holds beyond both, as far as the profiled run had used it before. */
  free_bytes: number;
  /** Whether the allocator of the process was read for `free_bytes`. */
  is_free_measured: boolean;
  /** The memory that the process holds beyond all that; negative where the profile has more. */
  difference_bytes: number;
  /** How the split is known. */
  evidence: Evidence;
  /** The functions that asked for the live bytes, as profiled, the largest first; they add up to `live_bytes`. */
  shares: Rows<HeapShare>;
  /** The mean distance of the samples, where the profile is sampled: then the live bytes are an estimate; 0 where it is unknown, null where it counts every block. */
  sample_period_bytes: number | null;
}

/** What allocator profiles say; the `bytes` of `owners` and of `heap` add up to `tree_bytes`. */
export interface HeapAnswer {
  /** The name and number of the format. Added members keep the number, a change of meaning raises it. */
  schema: "footprint/1";
  /** The program that wrote the answer. */
  tool: Tool;
  /** The verb that gave the answer. */
  verb: "heap";
  /** The `kernel` release and the `machine` of the host; empty where they are not known or do not matter. */
  host: Record<string, string>;
  /** The profiles. */
  target: HeapTarget;
  /** The profiles, each with the snapshot that the other tables are about. */
  profiles: Rows<ProfileRow>;
  /** All snapshots. */
  snapshots: Rows<SnapshotRow>;
  /** The bytes by object. */
  owners: Rows<OwnerBytes>;
  /** The bytes by function. */
  heap: Rows<FunctionBytes>;
  /** The call tree, with `--by tree` or `--by callers`. */
  calls: Rows<CallRow>;
  /** What grew from the first call tree to the chosen moment, by function, with `--by growth`. */
  growth: Rows<GrowthRow>;
  /** The functions that only pass memory on, with `--allocators`. */
  allocators: Rows<AllocatorRow>;
  /** What was counted over the whole run. */
  tallies: Rows<TallyRow>;
  /** What was counted over the whole run, by function. */
  totals: Rows<FunctionTotalsRow>;
  /** What the heap could do without. */
  findings: Rows<Finding>;
  /** What the reader of the figures must know. */
  notes: Rows<Note>;
  /** The findings that fail the answer; the member is absent without `--fail-on`. */
  failed?: Rows<FailedFinding>;
}

/** The live bytes that one function asked for. */
export interface HeapShare {
  /** The path of the object that the function is in, or in brackets why that is not known. */
  owner: string;
  /** The linker name of the function; null where it has none. */
  symbol: string | null;
  /** The name to show; in brackets the address where it starts in its file, or why it has no name. */
  name: string;
  /** The bytes. */
  bytes: number;
  /** The blocks; null where the profile does not count them. */
  block_count: number | null;
}

/** The profiles that were read. */
export interface HeapTarget {
  /** The files, with the moments that were named of them. */
  files: string[];
  /** What the report is grouped by. */
  by: string;
}

/** The history file. */
export interface HistoryTarget {
  /** The file. */
  history: string;
}

/** A part of the cost. */
export interface KindPart {
  /** `heap` (of malloc), the heap of Java, of Go or of a sanitizer (`runtime_heap`), the program and its libraries (`objects`), `stacks`, all `other` private memory, memory that processes of a group have shared since a fork (`shared_between`), files in memory that nobody else keeps (`own_shared`), or what the `kernel` spends. */
  part: Part;
  /** The bytes. */
  bytes: number;
  /** How they are known. */
  evidence: Evidence;
}

/** What one owner has in one mapping, or in all mappings of one kind that are not listed. A mapping of several owners has a row for each of them. When a mapping was made is not known: the kernel does not tell it. */
export interface MappingCost {
  /** The owner, as the ledger has it. */
  owner: string;
  /** What the memory is for. */
  kind: MemoryKind;
  /** The first address of the mapping; null in the row of the mappings that are not listed. */
  start_addr: number | null;
  /** The first address behind it; null there, too. */
  end_addr: number | null;
  /** Four letters, as in `/proc/PID/maps`; null there, too. */
  permissions: string | null;
  /** The name that the kernel gives: a file, `[heap]`, or `[anon:NAME]` as set by prctl(2); null where it has none. */
  name: string | null;
  /** The number of mappings: 1, or of those that are not listed. */
  mapping_count: number;
  /** Private bytes of the owner; null where only virtual sizes are known. */
  bytes: number | null;
  /** Virtual size of what the owner has there. */
  mapped_bytes: number;
  /** The part of `bytes` on a swap device; null where unknown. */
  swapped_bytes: number | null;
  /** Whether memory that nobody may access, of at most 1 MiB, is directly below or above the mapping, as below the stack of a thread. */
  has_guard: boolean;
  /** How `bytes` is known. */
  evidence: Evidence;
  /** How the owner is known. */
  attribution: Attribution;
}

/** How the private memory of a mapping grew. */
export interface MappingGrowth {
  /** The process. */
  pid: number;
  /** The first address, at the later audit. */
  start_addr: number;
  /** The address behind it. */
  end_addr: number;
  /** Its name; empty where it has none. */
  name: string;
  /** What it held before, or the mappings that were in its place. */
  before_bytes: number;
  /** What it holds. */
  now_bytes: number;
  /** By how much it grew. */
  delta_bytes: number;
}

/** One process of a group, before and now. */
export interface MemberChange {
  /** What happened to it: to its private memory, where it is there on both sides. */
  status: MemberStatus;
  /** The process now; null where it went, or is not known. */
  pid: number | null;
  /** The process before; null where it came, or is not known. */
  old_pid: number | null;
  /** Its command line or name. */
  command: string;
  /** Its private memory before; 0 where it was not there, null where it is not known. */
  old_bytes: number | null;
  /** The same now. */
  new_bytes: number | null;
  /** The growth of its private memory; null where that is not known. */
  delta_bytes: number | null;
  /** What it costs now, or did at last; null where it is not known. */
  per_process_bytes: number | null;
}

/** A file in memory: a memfd, shared anonymous memory, a SysV segment, a file of tmpfs, or a buffer of the kernel. */
export interface MemoryFileCost {
  /** What the ledger calls it. */
  owner: string;
  /** What it holds in all, swapped pages included, as far as that is known. */
  size_bytes: number;
  /** What of it is part of the cost: all that it holds where only these processes keep it, 0 where others keep it, too. These add up to `own_shared_bytes`. */
  own_bytes: number;
  /** What of it is part of `shared_once_bytes`. */
  shared_bytes: number;
  /** The virtual size of its mappings. */
  mapped_bytes: number;
  /** How many mappings it has. */
  mapping_count: number;
  /** How many descriptors hold it open. */
  descriptor_count: number;
  /** Who else keeps it: the first of them. */
  keeper_pids: number[];
  /** How `own_bytes` is known. */
  evidence: Evidence;
}

/** An object that another one brings in. */
export interface Need {
  /** Its path. */
  path: string;
  /** The number of its symbols that are used; null where it is a filtee of the other object, and where symbols were not read. */
  symbol_count: number | null;
}

/** A library that is new because an object needs it that is there without it. */
export interface NewRoot {
  /** Its path. */
  owner: string;
  /** Its soname, else its file name. */
  name: string;
  /** The paths of the objects that need it and that are there without it; empty where it is opened at run time, or needed by the loader alone. */
  needed_by: string[];
  /** How many libraries would leave with it, itself included. */
  library_count: number;
  /** The private memory of all of them. */
  retained_bytes: number;
  /** The line of a build file that links it, with its path below the folder of the project; else the line of the linker map; null where neither is known. */
  location: SourceLocation | null;
  /** The lines of build files that link it, where there are several. */
  possible_locations: SourceLocation[];
  /** The first object file that needs it, with the symbol, by the linker map; null without a map. */
  needed_for: string | null;
  /** What it costs with all libraries that came with it: the sum of their `delta_bytes`. */
  delta_bytes: number;
  /** How many libraries came with it, itself included. */
  brought_count: number;
}

/** Something that the reader of a figure must know, and that did not stop the answer. */
export interface Note {
  /** A stable word for the kind of note, such as `text-truncated`; `docs/notes.md` explains each. */
  slug: string;
  /** The file, mapping or object that the note is about. */
  subject: string;
  /** What was found, and what footprint did about it. */
  detail: string;
}

/** One object of a process, in load order. */
export interface ObjectCost {
  /** Its path, which is the owner of its rows. */
  path: string;
  /** Its soname, else its file name. */
  name: string;
  /** Its private memory: measured, or the startup minimum where nothing was measured. */
  own_bytes: number;
  /** The private memory of all objects that leave with it, itself included. */
  retained_bytes: number;
  /** The path of the nearest object with which it would leave; null where there is none. */
  held_by: string | null;
  /** The bytes of its thread-local variables in each thread. */
  tls_bytes: number;
  /** The objects that it brings in; null where these were not saved. */
  needs: Need[] | null;
  /** The build-id of its file; null where it has none, or it was not saved. */
  build_id: string | null;
  /** What the loader does for it; null where that was not counted. */
  start: StartCounts | null;
}

/** Kinds of memory within the totals that behave in their own way; 0 where there is none, or none is reported. */
export interface OfWhich {
  /** Part of `private`: on a swap device, back in memory when touched. */
  swapped_bytes: number;
  /** Part of `private`: freed with MADV_FREE; the kernel takes it when it needs memory. */
  lazy_free_bytes: number;
  /** Never swapped (mlock); the process's share of pages that others map too. */
  locked_bytes: number;
  /** Part of `private`, in transparent huge pages: writing one byte costs a whole huge page. */
  huge_page_bytes: number;
  /** Merged by KSM with equal pages of this or another process; not part of `private` where others map them too. */
  ksm_bytes: number;
  /** Huge pages of the reserved pool that only this process holds; in no total, because they were paid for when the pool was reserved. */
  hugetlb_private_bytes: number;
  /** Huge pages of the reserved pool that several processes hold; in no total. */
  hugetlb_shared_bytes: number;
  /** Part of `shared_once` and of `per_process`: files in memory that only this process and its descendants keep (memfd, shared anonymous memory, SysV, files of tmpfs), and mapped buffers of the kernel that no price of a descriptor has. Each started copy makes its own. */
  own_shared_bytes: number;
}

/** The bytes that one object asked for. */
export interface OwnerBytes {
  /** The profile. */
  file: string;
  /** The path of the object, or in brackets why it is not known. */
  owner: string;
  /** The bytes. */
  bytes: number;
  /** The blocks; null where the profile does not count them. */
  block_count: number | null;
}

/** The rows of one owner added up; an owner that is not there holds 0. */
export interface OwnerChange {
  /** Its name now, or its last name if it is gone. */
  owner: string;
  /** Its name before; null if it was not there. */
  old_owner: string | null;
  /** Whether it is not there any more. */
  is_gone: boolean;
  /** Whether it is a file: the program or a library. */
  is_object: boolean;
  /** The path of the object that it left with, if it was there only for that object. */
  left_with: string | null;
  /** The path of the new object that brought it in; null where another object needs it. */
  came_with: string | null;
  /** Private bytes before; null where only virtual sizes are known. */
  old_bytes: number | null;
  /** The same now. */
  new_bytes: number | null;
  /** The growth of its private bytes; if these are not known, of its mapped writable bytes. */
  delta_bytes: number;
  /** Virtual size before. */
  old_mapped_bytes: number;
  /** The same now. */
  new_mapped_bytes: number;
  /** The writable part of its virtual size before. */
  old_writable_bytes: number;
  /** The same now. */
  new_writable_bytes: number;
  /** Whether the starts of both runs overlap, so that the difference may be chance; null for single measurements. */
  is_noise: boolean | null;
}

/** The pages of one object. */
export interface PageMapRow {
  /** The path of the object, as the ledger has it. */
  owner: string;
  /** The pages, in ascending order. */
  parts: PagePartRow[];
  /** The sections that lie in them. */
  sections: PageSections;
  /** The number of pages that are left out: all maps together have at most 1,048,576. */
  omitted_pages: number;
  /** The number of sections that are left out: all maps together have at most 100,000. */
  omitted_sections: number;
}

/** Neighbouring pages of an object that are mapped alike. */
export interface PagePartRow {
  /** The address of the first page. */
  start_addr: number;
  /** What the pages are for. */
  kind: MemoryKind;
  /** Four letters, as in `/proc/PID/maps`. */
  permissions: string;
  /** The states of the pages in order, one for each run of pages in the same state. `shared` pages are in memory, perhaps of other processes too; `relocated` pages are private because relocations write them at each start; whether `not private` pages are in memory was not looked at; the page bits of `unknown` pages could not be read. */
  states: ("untouched" | "not private" | "shared" | "private" | "relocated" | "swapped" | "unknown")[];
  /** The number of pages in each run; as many as `states`. */
  page_counts: number[];
}

/** The sections of an object as columns, as far as they lie between its first page and its last. */
export interface PageSections {
  /** The names. */
  names: string[];
  /** The addresses; as many as `names`. */
  addrs: number[];
  /** The sizes; as many as `names`. */
  size_bytes: number[];
}

/** The cost of one of the N at some moment of its life, and of all of them; for the fork model. */
export interface Point {
  /** `just forked`, `now`, `everything rewritten`. */
  name: string;
  /** What one worker costs then. */
  each_bytes: number;
  /** What N of them and their parent cost. */
  total_bytes: number;
  /** How it is known. */
  evidence: Evidence;
}

/** Processes of a group that are alike: the same program, title and kind of parent. What each costs includes its descendants. Memory that it shares with its parent is not part of it. */
export interface ProcessClass {
  /** The command of the last of them. */
  command: string;
  /** The processes. */
  pids: number[];
  /** Their parents in the group; empty where these are not in the group. */
  parent_pids: number[];
  /** How they start. */
  model: Model;
  /** What shows that they start so. */
  reasons: string[];
  /** What one more of them costs: the median. */
  each_bytes: number;
  /** What the cheapest costs. */
  least_bytes: number;
  /** What the most expensive costs. */
  most_bytes: number;
  /** What all of them cost. */
  all_bytes: number;
  /** The threads of each, its descendants included: the mean, rounded up. */
  task_count: number;
  /** The parts of `each_bytes`. */
  terms: Term[];
  /** How the cost is known. */
  evidence: Evidence;
  /** Whether they only serve the main program of the group, and are of another program than that. */
  is_helper: boolean;
}

/** The process, program or group that an answer is about. */
export interface ProcessTarget {
  /** The target, as the user named it. */
  name: string;
  /** The process; null where it is not known, and for a group. */
  pid: number | null;
  /** The command line or the name of the process, of a group that of the first. */
  command: string;
  /** What was read: `smaps`, `pmap -d`, `prediction`, ... */
  source: string;
  /** Whether it was read from a running process. */
  is_live: boolean;
  /** The number of mappings. */
  mapping_count: number;
  /** The size of a page. */
  page_bytes: number;
}

/** The figures of a whole process; null where the input cannot tell. */
export interface ProcessTotals {
  /** Anonymous memory, resident or swapped, that only one process holds. */
  private_bytes: number | null;
  /** Page tables, kernel stacks and kernel objects of the process. */
  kernel_bytes: number | null;
  /** What one more process costs: private memory, page tables, kernel stacks and kernel objects, and the shared memory that it makes for itself. */
  per_process_bytes: number | null;
  /** Resident pages of files and of shared memory: the machine pays them once, however many processes map them. */
  shared_once_bytes: number | null;
  /** Anonymous memory that the process still shares with its fork relatives (copy on write), or that KSM merged. */
  shared_with_relatives_bytes: number | null;
  /** Address space that is private and writable: `writeable/private` of pmap. */
  mapped_writable_bytes: number | null;
  /** Address space that is mapped shared: `shared` of pmap. */
  mapped_shared_bytes: number | null;
  /** All address space of the process. */
  mapped_bytes: number | null;
  /** Pages that the loader surely writes before the program's own code runs, and constructors of libraries where `doctor --calibrate` measured them. */
  floor_bytes: number | null;
  /** All pages of the ELF files that can ever become private. */
  ceiling_bytes: number | null;
  /** How each figure that is not null is known. */
  evidence: Partial<Record<"private_bytes" | "kernel_bytes" | "per_process_bytes" | "shared_once_bytes" | "shared_with_relatives_bytes" | "mapped_writable_bytes" | "mapped_shared_bytes" | "mapped_bytes" | "floor_bytes" | "ceiling_bytes", Evidence>>;
  /** Kinds of memory in these figures that behave in their own way. */
  of_which: OfWhich;
}

/** One heap profile. */
export interface ProfileRow {
  /** The file, with the moment that was named of it. */
  file: string;
  /** The profiler that wrote it. */
  format: string;
  /** What its amounts are: `heap` bytes, `pages` of address space, bytes of `copies`, or `events`. */
  counted: Counted;
  /** The program that was profiled; null where the profile does not say. */
  command: string | null;
  /** What the profile says of itself; null where it says nothing. */
  description: string | null;
  /** The unit of its times; null where it has none. */
  time_unit: string | null;
  /** The process that was profiled; null where the profile does not say. */
  pid: number | null;
  /** The number of the snapshot that `owners`, `heap` and `calls` are about; null where there is none. */
  snapshot: number | null;
  /** What these tables count over the whole run, where they are about no snapshot; else null. */
  tally: string | null;
  /** The bytes that the program had asked for and not freed; null without a snapshot. */
  live_bytes: number | null;
  /** The bytes that the allocator used besides; null where the profile does not say. */
  extra_bytes: number | null;
  /** The stacks; null where the profile does not say. */
  stack_bytes: number | null;
  /** The bytes of the call tree; null where there is none. */
  tree_bytes: number | null;
  /** The part of them whose object is known. */
  attributed_bytes: number | null;
  /** How the amounts are known. */
  evidence: Evidence;
}

/** The cost of `count` processes, or threads. */
export interface Projection {
  /** The number of processes. */
  count: number;
  /** The cost of each, the sum of the terms that each pays; of each thread in the threads model. */
  per_process_bytes: number;
  /** What all of them pay once; null where unknown, and then not in the total. */
  shared_once_bytes: number | null;
  /** `shared_once_bytes + count * per_process_bytes`. */
  total_bytes: number;
  /** Which figure `per_process_bytes` is. */
  basis: Basis;
  /** The memory that was asked to be filled, where `count` is how many fit; else null. */
  memory_bytes: number | null;
  /** How it is known; the weakest of its terms. */
  evidence: Evidence;
  /** How the N start. */
  model: Model;
  /** What shows that they start so; empty where the model was chosen by the user. */
  reasons: string[];
  /** The parts of both. */
  terms: Rows<Term>;
  /** Moments in the life of a forked worker; empty in the other models. */
  points: Rows<Point>;
  /** The limits on how many fit, the one that is hit first at the beginning; empty where `count` was given. */
  limits: Rows<FitLimit>;
}

/** One release that was recorded. */
export interface Release {
  /** The program. */
  program: string;
  /** The name of the release: a version, or a commit. */
  version: string;
  /** Whether it is a commit. */
  is_commit: boolean;
  /** The time when it was made or audited (UTC); releases are in this order. */
  time: string;
  /** What was read: `prediction`, `smaps`, ... */
  source: string;
  /** The version of footprint that audited or recorded it. */
  tool_version: string;
}

/** One line of the ledger. */
export interface Row {
  /** The object's path as the kernel names it, or a name in brackets for what no file owns. */
  owner: string;
  /** What the memory is for. */
  kind: MemoryKind;
  /** The section, several joined by `+` where they cannot be told apart, or null. */
  section: string | null;
  /** The linker name, or null where no symbol owns the bytes. */
  symbol: string | null;
  /** What to show for the symbol, or why there is none. */
  name: string | null;
  /** Private bytes; null where only virtual sizes are known. */
  bytes: number | null;
  /** Virtual size; 0 for what is no part of the address space. */
  mapped_bytes: number;
  /** Resident bytes that are paid once per machine; null where unknown. */
  shared_bytes: number | null;
  /** The number of private pages in which the bytes lie, also those that other symbols lie in. */
  pages: number | null;
  /** The number of private pages in which no other variable lies: this one alone keeps them private. */
  sole_pages: number;
  /** The part of the bytes in pages that relocations write at start; null where unknown. */
  relocated_bytes: number | null;
  /** Whether the range counts into `mapped_writable_bytes`. */
  is_writable: boolean;
  /** How `bytes` is known (for the virtual ones: `mapped_bytes`). */
  evidence: Evidence;
  /** How the owner is known. */
  attribution: Attribution;
}

/** One row that differs, with its place now, or its last place if it is gone. */
export interface RowChange {
  /** What happened to it. */
  status: RowStatus;
  /** The object. */
  owner: string;
  /** What the memory is for. */
  kind: MemoryKind;
  /** The section, where there is one. */
  section: string | null;
  /** The linker name, where there is one. */
  symbol: string | null;
  /** What to show for it. */
  name: string | null;
  /** Private bytes before; 0 where it was not there, null where only virtual sizes are known. */
  old_bytes: number | null;
  /** The same now. */
  new_bytes: number | null;
  /** The growth of its private bytes; if these are not known, of its mapped writable bytes. */
  delta_bytes: number;
  /** Its virtual size before. */
  old_mapped_bytes: number;
  /** The same now. */
  new_mapped_bytes: number;
  /** Its mapped writable bytes before. */
  old_writable_bytes: number;
  /** Its mapped writable bytes now. */
  new_writable_bytes: number;
  /** The growth of its mapped bytes. */
  mapped_delta_bytes: number;
  /** Owner, section and symbol (or name) that it had, where it was moved or renamed. */
  before: FormerPlace | null;
  /** The source line that declares a variable that grew; null where that is not known. */
  location: SourceLocation | null;
  /** The lines that declare the copies of a variable that grew, where there are several. */
  possible_locations: SourceLocation[];
}

/** A start of a program that failed. */
export interface RunFailure {
  /** How it failed. */
  kind: RunFailureKind;
  /** Which start: 1 is the first. */
  start: number;
  /** What happened. */
  detail: string;
}

/** A rule that was run for an audit. */
export interface SearchedRule {
  /** Its name. */
  rule: string;
  /** How many doubtful findings it made that the audit leaves out. */
  left_out_count: number;
}

/** One moment of a profile. */
export interface SnapshotRow {
  /** The profile. */
  file: string;
  /** The number of the snapshot. */
  number: number;
  /** The time, in the unit of the profile; null where the profile has none. */
  time: number | null;
  /** The bytes that the program had asked for and not freed. */
  live_bytes: number;
  /** The bytes that the allocator used besides; null where the profile does not say. */
  extra_bytes: number | null;
  /** The stacks; null where the profile does not say. */
  stack_bytes: number | null;
  /** Whether it is the peak: the one that the profile marks, unless another is larger. */
  is_peak: boolean;
  /** Whether it has a call tree. */
  has_tree: boolean;
}

/** The memory of the variables that the source files of one group declare: one file, folder or component. */
export interface SourceCost {
  /** The group; null for memory whose source file is not known. */
  source: string | null;
  /** The object or the name in brackets that such memory belongs to; null where `source` is known. */
  owner: string | null;
  /** What that memory is, or why its source file is not known; null where `source` is known. */
  name: string | null;
  /** Private bytes; null where only virtual sizes are known. */
  bytes: number | null;
  /** Virtual size. */
  mapped_bytes: number;
  /** Resident bytes that are paid once per machine; null where unknown. */
  shared_bytes: number | null;
}

/** A place in the source code. */
export interface SourceLocation {
  /** The file. */
  file: string;
  /** The line; null where it is not known. */
  line: number | null;
}

/** What the loader does for one object at start. */
export interface StartCounts {
  /** The relocations that it applies. */
  relocation_count: number;
  /** The symbols that it looks up; null where its rules are not known. */
  lookup_count: number | null;
  /** The files that it tries and that are not there; null where its rules are not known. */
  failed_open_count: number | null;
  /** The page faults up to the entry point, estimated; null where that is not known. */
  page_faults: number | null;
}

/** An amount that the profile counts over the whole run. */
export interface TallyRow {
  /** The profile. */
  file: string;
  /** What is counted: `allocated`, `freed`, `temporary`, `read`, `written`, `copied`, `occurred`, `lived`. */
  name: string;
  /** The amount. */
  amount: number;
  /** Its unit; null where only the profile knows it. */
  unit: string | null;
  /** The blocks; null where the profile does not count them. */
  block_count: number | null;
}

/** One part of a cost. */
export interface Term {
  /** What is paid for. */
  name: string;
  /** How much. */
  size_bytes: number;
  /** Whether all of the N pay it once together, and not each of them. */
  is_once: boolean;
  /** How it is known. */
  evidence: Evidence;
  /** Whether it is page cache: the kernel drops it where memory is short, so it takes nothing from a limit. */
  is_page_cache: boolean;
}

/** The program that wrote the answer. */
export interface Tool {
  /** Always `footprint`. */
  name: "footprint";
  /** Its version. */
  version: string;
}

/** The values of one figure of a program. */
export interface Trend {
  /** The program. */
  program: string;
  /** The figure. */
  figure: string;
  /** The owner that was asked for; null for the whole. */
  owner: string | null;
  /** What the values count. */
  unit: FigureUnit;
  /** One value for each release of the program, in the order of `releases`; null where it is not known. */
  values: (number | null)[];
  /** The first value that is known. */
  first: number;
  /** The last value that is known. */
  last: number;
  /** The last value less the first. */
  change: number;
  /** The largest change from one release to the next; null where nothing changed. */
  largest_step: TrendStep | null;
}

/** The releases of programs, and how their figures changed. */
export interface TrendAnswer {
  /** The name and number of the format. Added members keep the number, a change of meaning raises it. */
  schema: "footprint/1";
  /** The program that wrote the answer. */
  tool: Tool;
  /** The verb that gave the answer. */
  verb: "trend";
  /** The `kernel` release and the `machine` of the host; empty where they are not known or do not matter. */
  host: Record<string, string>;
  /** The history file. */
  target: HistoryTarget;
  /** The releases, by program and in the order of time. */
  releases: Rows<Release>;
  /** The figures. */
  trends: Rows<Trend>;
  /** What the reader of the figures must know. */
  notes: Rows<Note>;
}

/** The largest change of a figure between two releases that both know it. */
export interface TrendStep {
  /** The version before. */
  before: string;
  /** The version with the change. */
  after: string;
  /** The change. */
  delta: number;
  /** The owner whose part changed most in the same direction; null if owners do not make up the figure. */
  owner: string | null;
  /** The change of that owner's part. */
  owner_delta: number;
}

/** The permission to exceed a budget for a time. */
export interface Waiver {
  /** Why it was given. */
  reason: string;
  /** The last day on which it holds. */
  expires: string;
  /** Whether that day is over. */
  is_expired: boolean;
}

/** What a watch saw. */
export interface WatchAnswer {
  /** The name and number of the format. Added members keep the number, a change of meaning raises it. */
  schema: "footprint/1";
  /** The program that wrote the answer. */
  tool: Tool;
  /** The verb that gave the answer. */
  verb: "watch";
  /** The `kernel` release and the `machine` of the host; empty where they are not known or do not matter. */
  host: Record<string, string>;
  /** What was watched. */
  target: WatchTarget;
  /** Its figures. */
  watch: WatchFigures;
  /** How the cost went, and that of each owner. */
  growth: Rows<WatchGrowth>;
  /** The cost over time. */
  samples: Rows<WatchSample>;
  /** The cost of each owner over time; null where fewer than two moments are known. */
  owner_layers: WatchLayers | null;
  /** The cost of each process over time; null where there are fewer than two. */
  process_layers: WatchLayers | null;
  /** The processes, those with the largest peaks first. */
  processes: Rows<WatchProcess>;
  /** The audits. */
  audits: Rows<WatchAudit>;
  /** What changed by owner between the first audit and the last one, or that at the peak. */
  owner_changes: Rows<OwnerChange>;
  /** The rows that differ between these two. */
  changes: Rows<RowChange>;
  /** The mappings that grew between these two, those that grew most first. */
  grown_mappings: Rows<MappingGrowth>;
  /** What the watch cannot tell: gates fail on it, unless it is accepted by its name. */
  gaps: Rows<WatchGap>;
  /** What the heap is made of at the end, by an allocator profile; null where none was named. */
  heap_account: HeapAccount | null;
  /** What the reader of the figures must know. */
  notes: Rows<Note>;
}

/** A whole audit that was made. */
export interface WatchAudit {
  /** Why: `start`, `peak`, `growth`, `last`, `end` or `signal`. */
  moment: string;
  /** When the processes were read. */
  ms: number;
  /** What it explains: the cost of all processes then. */
  held_bytes: number;
}

/** What all processes together cost over time: private memory, files in memory of their own, and kernel memory. */
export interface WatchFigures {
  /** How long the watch went. */
  duration_ms: number;
  /** The time between two ticks that was asked for. */
  every_ms: number;
  /** The number of ticks. */
  tick_count: number;
  /** The processor time of the watch itself, its audits included. */
  own_cpu_ms: number;
  /** The cost at the last tick with a process. */
  cost_bytes: number;
  /** The largest cost at a tick; the peak of the cgroup, or what one process held at its own peak, where that is larger. */
  peak_bytes: number;
  /** The counter of the cgroup, `ticks`, or the counter of a process. */
  peak_source: string;
  /** Whether more may have been held between two ticks, where nobody looked. */
  is_peak_lower_bound: boolean;
  /** The time of the tick with the largest cost. */
  peak_ms: number;
  /** The most that an audit explains; null without an audit. */
  audited_bytes: number | null;
  /** When that was. */
  audited_ms: number | null;
  /** What was not exceeded in 95 % of the time. */
  usual_most_bytes: number;
  /** The number of processes in all. */
  process_count: number;
  /** The largest number at a time. */
  most_process_count: number;
  /** How many processes and threads the whole machine has started meanwhile; null where nobody knows. */
  started_count: number | null;
  /** How many of them were seen to start; the same. */
  seen_count: number | null;
  /** How: `events`, `ptrace`, `polling`, or `named` where the processes were named by their PIDs, so that no other can belong to them; the same. */
  seen_by: string | null;
}

/** Something that a watch cannot tell. */
export interface WatchGap {
  /** What. */
  kind: WatchGapKind;
  /** Why. */
  detail: string;
}

/** How memory went over time. */
export interface WatchGrowth {
  /** The owner; null for the cost of all processes. Where that has a trend, those of the owners add up to it; `[between the audits]` is what the audits have not seen of it. */
  owner: string | null;
  /** How. */
  kind: GrowthKind;
  /** Its slope by Theil and Sen; null where there are too few values. */
  bytes_per_hour: number | null;
  /** The lower end of its interval of 95 %. */
  least_bytes_per_hour: number | null;
  /** The upper end. */
  most_bytes_per_hour: number | null;
  /** From when on: what was before is its warm-up. */
  since_ms: number;
  /** What it held in the first audit; of all processes, at the first tick. */
  first_bytes: number;
  /** What it held in the last one. */
  last_bytes: number;
}

/** What memory consists of over time; of a long watch, moments that are evenly spread, and those of audits. */
export interface WatchLayers {
  /** Those that held most at some moment, the largest first. */
  names: string[];
  /** The moments. */
  moments: Rows<WatchMoment>;
}

/** A moment of which the layers are known. */
export interface WatchMoment {
  /** The time. */
  ms: number;
  /** Why a whole audit was made then: `start`, `peak`, `growth`, `end` or `signal`; null without one. */
  audit: string | null;
  /** The cost of all processes at the last tick. */
  cost_bytes: number;
  /** The bytes of each layer, in the order of their names. */
  layer_bytes: number[];
  /** The bytes of all that have no layer. */
  others_bytes: number;
}

/** A process that was seen. */
export interface WatchProcess {
  /** Its number in the watch: a later process can have the same PID. */
  number: number;
  /** Its PID. */
  pid: number;
  /** The PID of its parent, where that is known. */
  parent_pid: number | null;
  /** Its command line, or its name. */
  command: string;
  /** When it was first seen. */
  came_ms: number;
  /** When it was seen to have ended; null for one that had not. */
  ended_ms: number | null;
  /** How long it lived: by taskstats, else from when it was first seen to its end, or to now. */
  lived_ms: number;
  /** Its exit code; null where it is not known. */
  exit_code: number | null;
  /** The most resident memory that it had, where that is known. */
  peak_resident_bytes: number | null;
  /** How that is known: `taskstats`, `exit stop` or `status`. */
  peak_source: string;
  /** The largest cost at a tick; 0 for one that lived between two. */
  peak_cost_bytes: number;
}

/** The cost of all processes at a moment; of a long watch, moments that are evenly spread. */
export interface WatchSample {
  /** The time. */
  ms: number;
  /** The cost. */
  cost_bytes: number;
}

/** What was watched. */
export interface WatchTarget {
  /** What the user named. */
  name: string;
  /** The file that keeps what was seen, all or a part of it; null where none does, or the disk took nothing. */
  series: string | null;
  /** When the watch began, in seconds since 1970. */
  time: number;
}