"""`footprint whatif`: a program run without some libraries, or as another build."""

from typing import TYPE_CHECKING, Annotated

from footprint.errors import UsageError
from footprint.text.escape import printable
from footprint.verbs import options
from footprint.verbs.commands import Option
from footprint.verbs.output import EXIT_RUN_FAILED, Answer, check_formats, complain, lazy_modules, write

if TYPE_CHECKING:
    from footprint.verbs.whatif import builds_text, call, json, text
    from footprint.verbs.whatif.result import BuildComparison, WhatIf
else:
    builds_text, call, json, text = lazy_modules("footprint.verbs.whatif", "builds_text call json text")


ORDER = 30
NEEDS_RIGHTS = True
HAS_COMMAND = True


@options.shared_options("html output format_ table json color quiet verbose strict", "report")
def whatif(
    command: options.Words,
    drop: Annotated[
        list[str] | None, Option("--drop", help="A library that nobody uses; repeatable.", metavar="LIB")
    ] = None,
    with_: Annotated[
        str | None, Option("--with", help="Another build of the program, to compare it with.", metavar="BINARY")
    ] = None,
    when: options.When = "exit",
    when_output: options.WhenOutput = None,
    timeout: options.Timeout = 60,
    starts: options.Starts = 3,
    start_cost: options.StartCost = False,
    force: Annotated[bool, Option("--force", help="With --drop: although something is bound from it.")] = False,
    expect_exit: options.ExpectExit = 0,
    allow: options.Allow = None,
    count: options.Count = 1,
    per: options.Per = None,
    top: options.Top = 20,
    *,
    output: options.OutputOptions,
) -> int:
    """Measure what a library less, or another build, saves.

    With --drop, a private copy is patched. With --with, both builds are started as they are, with the same arguments;
    exit code 5 says that one of them failed, as for `run` (--expect-exit, --allow). What is printed is compared; exit
    code 1 says that it differs.

    \b
    footprint whatif --drop libm.so.6 --when settled -n 10000 -- ./server
    footprint whatif --with ./server.new --when settled --starts 5 -- ./server
    """
    if bool(drop) is (with_ is not None):
        raise UsageError("say what to compare the program with: --drop LIB, or --with BINARY")
    if drop and (expect_exit or allow):
        raise UsageError("--expect-exit and --allow go with --with")
    if with_ is not None and force:
        raise UsageError("--force goes with --drop")
    name = f"whatif {command[0]}"
    count, starts_a_day = options.count_and_starts(count, per)
    if with_ is None:
        answer = _dropping_answer(top, is_whole=output.has_whole_names)
        check_formats(answer, output)
        result = call.whatif(
            command,
            drop=drop or (),
            when=when,
            when_output=when_output,
            starts=starts,
            count=count,
            force=force,
            timeout_seconds=timeout,
            has_start_cost=start_cost,
            starts_a_day=starts_a_day,
        )
        code = write(answer, result, name, output, result.notes)
        return code if result.is_alike else 1
    with_answer = _builds_answer(top, is_whole=output.has_whole_names)
    check_formats(with_answer, output)
    compared = call.compare_builds(
        command,
        with_,
        when=when,
        when_output=when_output,
        starts=starts,
        count=count,
        timeout_seconds=timeout,
        expect_exit=expect_exit,
        allow=allow or (),
        has_start_cost=start_cost,
        starts_a_day=starts_a_day,
    )
    code = write(with_answer, compared, name, output, compared.notes)
    if any(compared.failures):
        if output.file != "-":
            complain(f"footprint: {printable(builds_text.builds_failure_text(compared))}")
        return EXIT_RUN_FAILED
    return code if compared.is_alike else 1


def _dropping_answer(top: int, *, is_whole: bool) -> "Answer[WhatIf]":
    return Answer(
        "whatif",
        "changes",
        document=lambda result: text.whatif_document(result, top=top, has_whole_names=is_whole),
        members=json.whatif_members,
        has_page=True,
    )


def _builds_answer(top: int, *, is_whole: bool) -> "Answer[BuildComparison]":
    return Answer(
        "whatif",
        "changes",
        document=lambda result: builds_text.builds_document(result, top=top, has_whole_names=is_whole),
        members=json.builds_members,
        has_page=True,
    )
