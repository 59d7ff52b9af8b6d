"""The command: `footprint`, and `python -m footprint`."""

# Not `signal`, which first makes enumerations.
import _signal  # type: ignore[import-not-found] # a part of the interpreter
import sys

_IS_INTERRUPTIBLE = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
if _IS_INTERRUPTIBLE:
    # While modules are imported, Ctrl-C ends the command as it ends any program: without a traceback.
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import _thread  # noqa: E402 # after the line above
import atexit  # noqa: E402 # the same
import os  # noqa: E402 # the same
import signal  # noqa: E402 # the same
import time  # noqa: E402 # the same
from contextlib import suppress  # noqa: E402 # the same
from types import FrameType  # noqa: E402 # the same
from typing import NoReturn  # noqa: E402 # the same

from footprint.cli import EXIT_INTERRUPTED, main  # noqa: E402 # the same

_IMPORT_FILE = "<frozen importlib._bootstrap>"
_RETRY_SECONDS = 0.005
_interrupts_again: list[int] = []


def command() -> int:
    """Run the command of this process. An interrupt is an exception in it, so that verbs undo what they did."""
    try:
        if _IS_INTERRUPTIBLE:
            signal.signal(signal.SIGINT, _interrupt)
            sys.unraisablehook = _unraisable
        code = main()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    else:
        # The command may end before the second interrupt reaches it.
        return EXIT_INTERRUPTED if _interrupts_again else code
    finally:
        if _IS_INTERRUPTIBLE:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_process() -> NoReturn:
    """Run the command, and end the process with its exit code, without freeing each object before.

    That costs 7,000,000 instructions, and changes nothing unless something waits for the end of the interpreter.
    """
    code = command()
    has_witness = "threading" in sys.modules or sys.gettrace() is not None or sys.getprofile() is not None
    if not has_witness and not atexit._ncallbacks():  # noqa: SLF001 # nothing else tells it
        with suppress(OSError, ValueError):
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
            os._exit(code)
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; but while a module is imported, which may lose or replace the exception, after that."""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_FILE:
            _interrupt_again(number)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _interrupt_again(number: int) -> None:
    main_thread = _thread.get_ident()
    _interrupts_again.append(number)

    def interrupt() -> None:
        time.sleep(_RETRY_SECONDS)
        signal.pthread_kill(main_thread, number)

    _thread.start_new_thread(interrupt, ())


def _unraisable(hook: "sys.UnraisableHookArgs") -> None:
    """Interrupt again where Python dropped the exception, as in a callback of a weak reference."""
    if hook.exc_type is KeyboardInterrupt:
        _interrupt_again(signal.SIGINT)
    else:
        sys.__unraisablehook__(hook)


if __name__ == "__main__":
    run_process()
