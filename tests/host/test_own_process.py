"""A process that audits itself counts what footprint imported; a note says so, and doing what it says does not."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Prints the cost of this process as a process that it starts sees it, then as it sees itself, and the notes of each.
CODE = """
import json, os, subprocess, sys
command = [sys.executable, "-m", "footprint", "audit", "--json", str(os.getpid())]
answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
import footprint
own = footprint.audit(os.getpid())
print(json.dumps({
    "child": answer["totals"]["per_process_bytes"],
    "own": own.totals.per_process.bytes,
    "child_notes": [note["slug"] for note in answer["notes"]],
    "own_notes": [note.slug for note in own.notes],
}))
"""


def test_the_way_round_that_the_note_names_gives_the_smaller_figure() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, check=True, cwd=ROOT, text=True)
    found = json.loads(done.stdout)
    assert found["child"] < found["own"] - (2 << 20)
    assert "own-process" in found["own_notes"]
    assert "own-process" not in found["child_notes"]
