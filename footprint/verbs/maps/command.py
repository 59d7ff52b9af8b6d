"""`footprint maps`: every mapping of a process with its owner."""

from typing import TYPE_CHECKING

from footprint.verbs import options
from footprint.verbs.lazy import lazy_modules
from footprint.verbs.output import Answer, check_formats, write

if TYPE_CHECKING:
    from footprint.verbs.maps import call, json, text
    from footprint.verbs.maps.call import OwnedMap
else:
    call, json, text = lazy_modules("footprint.verbs.maps", "call json text")

__all__ = ("maps",)

ORDER = 70


@options.shared_options("html output format_ table json color quiet verbose strict", "report")
def maps(
    target: options.Target,
    pid: options.Pid = None,
    root: options.Root = None,
    *,
    output: options.OutputOptions,
) -> int:
    """List every mapping of a process with its owner.

    \b
    footprint maps 4711
    footprint maps smaps.txt --json
    """
    answer: Answer[OwnedMap] = Answer(
        "maps",
        "mappings",
        document=lambda found: text.maps_document(found, has_whole_names=output.has_whole_names),
        members=json.maps_members,
        has_page=True,
    )
    check_formats(answer, output)
    found = call.maps(target, pid=pid, root=root)
    return write(answer, found, f"maps {target}", output, found.notes)
