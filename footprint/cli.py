"""The command line: options, files, exit codes. What the answers are is decided elsewhere."""

import gc
import os
import sys
from collections.abc import Sequence

from footprint import __version__
from footprint.errors import FootprintError, UsageError

__all__ = ("EXIT_INTERRUPTED", "main")

EXIT_WRONG_USE = 2
EXIT_UNREADABLE = 3
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code.

    0 is fine, 1 findings or a budget exceeded, 2 wrong use, 3 an input that cannot be read, 4 a partial answer under
    `--strict`, 5 a program that failed while it was run, 130 an interrupt, 141 a broken pipe.
    """
    # One answer, then the end: looking for cycles among a million facts that all live on only costs time.
    if arguments is None:
        gc.disable()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words == ["--version"]:
            # Asked by scripts, often: nothing else is imported for it.
            print(f"footprint {__version__}", flush=True)  # noqa: T201 # the answer itself
            return 0
        from footprint.verbs.app import run

        return run(words)
    except FootprintError as error:
        from footprint.formats.escape import printable

        print(f"footprint: {printable(str(error))}", file=sys.stderr)  # noqa: T201 # errors go to stderr
        return EXIT_WRONG_USE if isinstance(error, UsageError) else EXIT_UNREADABLE
    except MemoryError:
        print("footprint: there is not enough memory for the answer", file=sys.stderr)  # noqa: T201 # the same
        return EXIT_UNREADABLE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has left. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    finally:
        if arguments is None:
            # Nor is there anything to look for among them at exit.
            gc.freeze()
