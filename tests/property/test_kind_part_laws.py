"""What a process or a group costs by kind of memory adds up to the byte, in JSON and on the screen."""

from hypothesis import given
from hypothesis import strategies as st

from footprint.attribution.group import group_up
from footprint.formats.audit_json import audit_members
from footprint.formats.document import Facts
from footprint.model.row import Part
from footprint.verbs.audit.text import audit_document
from tests.groupmembers import SEGMENT, TEXT, Member, block, file, heap, member
from tests.property.test_ledger_laws import SOME, Process, audit_of, processes

STACK = "7ff00000-7ff80000 rw-p 00000000 00:00 0 [stack]"
DATA = "40080000-40100000 rw-p 00080000 08:01 11 /usr/bin/server"
NAMELESS = "60000000-60100000 rw-p 00000000 00:00 0"
SIZES = st.integers(0, 512)
JVM = "50000000-50040000 r-xp 00000000 08:01 12 /usr/lib/libjvm.so"
LABELS = ("heap", "heap of its runtime", "program and libraries", "stacks", "anonymous and other")


def private(header: str, kib: int) -> bytes:
    return block(header, Rss=kib, Anonymous=kib, Private_Dirty=kib)


@st.composite
def members(draw: st.DrawFn) -> list[Member]:
    result = []
    for pid in range(1, 1 + draw(st.integers(1, 4))):
        own_bytes, shared, segment = draw(SIZES), draw(SIZES), draw(SIZES)
        blocks = [
            file(TEXT, 100),
            # With it, nameless memory at a low address is the heap of Java.
            *([file(JVM, 10)] if draw(st.booleans()) else []),
            private(DATA, draw(SIZES)),
            heap(own_bytes, min(shared, 700 - own_bytes)),
            private(NAMELESS, draw(SIZES)),
            block(SEGMENT, Rss=segment, Pss=segment, Shared_Dirty=segment),
            private(STACK, draw(SIZES)),
        ]
        result.append(member(pid, *blocks, pss_anon=draw(st.integers(0, 4000)), page_tables=draw(SIZES)))
    return result


@given(members())
def test_the_parts_of_a_process_add_up_to_its_cost(result: list[Member]) -> None:
    for snapshot, audit in result:
        written = audit_members(audit, "1.2.3")
        sums = {row["part"]: row["bytes"] for row in written["parts"]}
        assert len(sums) == len(written["parts"])
        assert sum(sums.values()) == written["totals"]["per_process_bytes"]
        assert sums.get("kernel", 0) == written["totals"]["kernel_bytes"]
        private_parts = (Part.HEAP, Part.RUNTIME_HEAP, Part.OBJECTS, Part.STACKS, Part.OTHER)
        assert sum(sums.get(part, 0) for part in private_parts) == written["totals"]["private_bytes"]
        nameless = [mapping for mapping in snapshot.memory.mappings if not mapping.name]
        runtime_bytes = sum(one.counters.get("Anonymous") or 0 for one in nameless)
        has_runtime = any("libjvm" in mapping.name for mapping in snapshot.memory.mappings)
        assert sums.get(Part.RUNTIME_HEAP if has_runtime else Part.OTHER, 0) == runtime_bytes


@SOME
@given(processes(is_wild=True))
def test_the_parts_of_any_text_add_up_to_its_cost_or_to_its_private_memory(process: Process) -> None:
    memory, images = process
    written = audit_members(audit_of(memory, images), "1.2.3")
    totals = written["totals"]
    cost_bytes = totals["private_bytes"] if totals["per_process_bytes"] is None else totals["per_process_bytes"]
    assert ("parts" in written) is (totals["private_bytes"] is not None)
    assert sum(row["bytes"] for row in written.get("parts", [])) == (cost_bytes or 0)


@given(members())
def test_the_parts_of_a_group_add_up_to_its_cost(result: list[Member]) -> None:
    written = audit_members(group_up(result), "1.2.3")
    sums = {row["part"]: row["bytes"] for row in written["parts"]}
    group = written["group"]
    assert sum(sums.values()) == group["per_group_bytes"]
    for part in ("kernel", "shared_between", "own_shared"):
        assert sums.get(part, 0) == group[f"{part}_bytes"]


@given(members())
def test_the_parts_stand_under_the_private_memory_that_they_add_up_to(result: list[Member]) -> None:
    shares = []
    for document in (audit_document(result[0][1]), audit_document(group_up(result))):
        totals = next(facts for facts in document if isinstance(facts, Facts))
        rows = [(name.strip(), remark) for name, _, remark in totals.rows]
        labels = [name for name, _ in rows if name in LABELS]
        assert labels == [name for name in LABELS if name in labels]
        shares.append(sum(float(remark.split("%")[0]) for name, remark in rows if name in LABELS))
    assert all(share == 0 or abs(share - 100) < 0.5 for share in shares)
