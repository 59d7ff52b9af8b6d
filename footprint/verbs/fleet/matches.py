"""Matches what is compared across versions, in the way of `diff`: programs, owners, variables."""

from collections import defaultdict

from footprint.release.matching import comparable_name, matched_owners, matched_programs
from footprint.store.asking import Dataset

__all__ = ("add_matches",)


def add_matches(dataset: Dataset) -> None:
    """Fill the tables `matched_owners` and `matched_symbols`: what has another name on the new side."""
    owners: dict[str, dict[str, set[str]]] = {"old": defaultdict(set), "new": defaultdict(set)}
    for side, program, owner in dataset.run("SELECT DISTINCT side, program, owner FROM compared_amounts").rows:
        owners[str(side)][str(program)].add(str(owner))
    rows = []
    for program, new_program in matched_programs(owners["old"].keys(), owners["new"].keys()).items():
        before, now = owners["old"][program], owners["new"][new_program]
        names = matched_owners(before, now) | {program: new_program}
        rows += [("old", program, owner, new_program, names.get(owner, owner)) for owner in sorted(before)]
    columns = zip(*rows, strict=True) if rows else [()] * 5
    keys = ("side", "program", "owner", "new_program", "new_owner")
    dataset.fill("matched_owners", {name: list(column) for name, column in zip(keys, columns, strict=True)})
    symbols = dataset.run(
        "SELECT symbol FROM compared_amounts WHERE symbol IS NOT NULL GROUP BY symbol HAVING count(DISTINCT side) = 1"
    )
    found = {symbol: comparable_name(symbol) for (symbol,) in symbols.rows if isinstance(symbol, str)}
    changed = {symbol: name for symbol, name in found.items() if symbol != name}
    dataset.fill("matched_symbols", {"symbol": list(changed), "name": list(changed.values())})
