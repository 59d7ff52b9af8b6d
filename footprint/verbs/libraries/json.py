"""`libraries --json`."""

from footprint.attribution.object_prediction import count_pages
from footprint.formats.escape import well_formed
from footprint.formats.findings_json import finding_rows
from footprint.formats.json import Json, envelope, note_rows
from footprint.verbs.libraries.result import Libraries

__all__ = ("libraries_members",)


def libraries_members(found: Libraries, version: str) -> Json:
    """Give the objects of a program in load order, with their relations and costs, and what could be spared."""
    graph = found.graph
    target = {
        "name": well_formed(found.target),
        "pid": found.pid,
        "libc": graph.link_map.libc.value,
        "page_bytes": graph.page_bytes,
        "evidence": graph.evidence.value,
    }
    missing = [
        {"name": well_formed(one.name), "requester": one.requester, "cause": well_formed(one.cause)}
        for one in graph.link_map.missing
    ]
    return envelope(version, {}, target) | {
        "libraries": [_row(found, number) for number in range(len(graph.objects))],
        "missing": missing,
        "count": found.count,
        "findings": finding_rows(found.findings, found.count),
        "notes": note_rows(found.notes),
    }


def _row(found: Libraries, number: int) -> Json:
    graph = found.graph
    linked, prediction = graph.objects[number], graph.predictions[number]
    answerers = graph.answerers(number)
    needed = [
        {
            "name": well_formed(one.name),
            "number": one.place,
            "symbol_count": None if one.place is None else len(answerers.get(one.place, ())),
        }
        for one in linked.dependencies
    ]
    retained = graph.retained[number]
    return {
        "number": number,
        "path": well_formed(linked.path),
        "soname": None if linked.library.linkage.soname is None else well_formed(linked.library.linkage.soname),
        "found_by": linked.found_by.value,
        "loader": linked.loader,
        "needed": needed,
        "users": list(graph.bindings.users(number)),
        "used_symbol_count": graph.used_count(number),
        "private_bytes": None if graph.private_bytes is None else graph.private_bytes[number],
        "floor_bytes": None if prediction is None else prediction.startup_min_bytes,
        "ceiling_bytes": None if prediction is None else prediction.startup_max_bytes,
        "mapped_bytes": None if prediction is None else prediction.mapped_bytes,
        "mapping_count": None if prediction is None else prediction.mapping_count,
        "tls_bytes": None if prediction is None else prediction.tls_bytes,
        "retained_bytes": graph.retained_bytes[number],
        "retained": sorted(retained - {number}),
        "causes": {} if prediction is None else {cause.value: count_pages(p) for cause, p in prediction.causes.items()},
    }
