"""`footprint fleet`: questions about the programs and processes of many hosts."""

from typing import Annotated

from footprint.verbs import options
from footprint.verbs.commands import Argument, Option
from footprint.verbs.output import Answer, check_formats, emit, write

ORDER = 136


@options.shared_options("html output format_ table json color quiet verbose strict", "report figures")
def fleet(
    dataset: Annotated[str, Argument(help="The folder that `footprint scan` writes.", metavar="FOLDER")],
    question: Annotated[
        str | None, Argument(help="What to ask; without it, the questions are listed.", metavar="[QUESTION]")
    ] = None,
    query: Annotated[str | None, Option("--query", help="Ask in SQL: one SELECT.", metavar="SQL")] = None,
    sql: Annotated[bool, Option("--sql", help="Print the SQL of the question, for DuckDB.")] = False,
    day: Annotated[
        str | None, Option("--day", help="The fleet of this day; else of the last one.", metavar="DAY")
    ] = None,
    from_: Annotated[
        str | None,
        Option("--from", help="Growth from this day, build-id or package version.", metavar="WHICH"),
    ] = None,
    to: Annotated[str | None, Option("--to", help="Growth to this one.", metavar="WHICH")] = None,
    program: Annotated[
        str | None, Option("--program", help="Only these programs, such as '*/condor_*'.", metavar="PATTERN")
    ] = None,
    keep: Annotated[
        str | None, Option("--keep", help="With `prune`: how many days before the last one stay.", metavar="DAYS")
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
    footprint fleet fleet/ prune --keep 90d
    footprint fleet fleet/ growth --from 2026-11-01 --program '*/condor_shadow'
    footprint fleet fleet/ --query 'SELECT count(*) FROM current_processes'
    """
    from footprint.store.remote import local_folder
    from footprint.verbs.fleet import answer, call, questions

    if question == "prune" or keep is not None:
        emit(call.prune_dataset(dataset, question, keep), output.file)
        return 0
    if sql:
        chosen = questions.question_of(question or questions.SAVINGS)
        variables = call.variables_of(day, from_, to, count, program)
        with local_folder(dataset) as folder:
            emit(questions.script_of(chosen, folder, variables), output.file)
        return 0
    parts: Answer[call.Fleet] = Answer(
        "fleet",
        "rows",
        document=lambda result: answer.fleet_document(result, top=top, is_whole=output.has_whole_names),
        members=answer.fleet_members,
        figures=answer.fleet_figures,
        has_page=True,
    )
    check_formats(parts, output)
    result = call.fleet(dataset, question, query=query, day=day, before=from_, after=to, count=count, program=program)
    return write(parts, result, " ".join(filter(None, ("fleet", dataset, question))), output, result.notes)
