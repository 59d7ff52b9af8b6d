"""`footprint fleet`: questions about the programs and processes of many hosts."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint.verbs import options
from footprint.verbs.lazy import lazy_modules
from footprint.verbs.output import Answer, check_formats, emit, write

if TYPE_CHECKING:
    from footprint.verbs.fleet import call, json, questions, text
    from footprint.verbs.fleet.call import Fleet
else:
    call, json, questions, text = lazy_modules("footprint.verbs.fleet", "call json questions text")

__all__ = ("fleet",)

ORDER = 136


@options.shared_options("html output format_ table json color quiet strict", "report")
def fleet(
    dataset: Annotated[str, typer.Argument(help="The folder that `footprint scan` writes.", metavar="FOLDER")],
    question: Annotated[
        str | None, typer.Argument(help="What to ask; without it, the questions are listed.", metavar="[QUESTION]")
    ] = None,
    query: Annotated[str | None, typer.Option("--query", help="Ask in SQL: one SELECT.", metavar="SQL")] = None,
    sql: Annotated[bool, typer.Option("--sql", help="Print the SQL of the question, for DuckDB.")] = False,
    day: Annotated[
        str | None, typer.Option("--day", help="The fleet of this day; else of the last one.", metavar="DAY")
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", help="Growth from this day, build-id or package version.", metavar="WHICH"),
    ] = None,
    to: Annotated[str | None, typer.Option("--to", help="Growth to this one.", metavar="WHICH")] = None,
    program: Annotated[
        str | None, typer.Option("--program", help="Only these programs, such as '*/condor_*'.", metavar="PATTERN")
    ] = None,
    count: options.Count = 1,
    top: options.Top = 20,
    *,
    output: options.OutputOptions,
) -> int:
    """Ask what a fleet costs: programs, unused libraries, growth.

    \b
    footprint fleet fleet/
    footprint fleet fleet/ unused
    footprint fleet fleet/ growth --from 2026-11-01 --program '*/condor_shadow'
    footprint fleet fleet/ --query 'SELECT count(*) FROM current_processes'
    """
    if sql:
        asked = questions.question_of(question or questions.SAVINGS)
        variables = call.variables_of(day, from_, to, count, program)
        emit(questions.script_of(asked, dataset, variables), output.file)
        return 0
    answer: Answer[Fleet] = Answer(
        "fleet",
        "rows",
        document=lambda found: text.fleet_document(found, top=top),
        members=json.fleet_members,
        has_page=True,
    )
    check_formats(answer, output)
    found = call.fleet(dataset, question, query=query, day=day, before=from_, after=to, count=count, program=program)
    return write(answer, found, " ".join(filter(None, ("fleet", dataset, question))), output, found.notes)
