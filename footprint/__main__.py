"""The command: `footprint`, and `python -m footprint`."""

import signal
import sys

_IS_INTERRUPTIBLE = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _IS_INTERRUPTIBLE:
    # While modules are imported, Ctrl-C ends the command as it ends any program: without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from footprint.cli import EXIT_INTERRUPTED, main  # noqa: E402 # after the line above


def command() -> int:
    """Run the command of this process. An interrupt is an exception in it, so that verbs undo what they did."""
    try:
        if _IS_INTERRUPTIBLE:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return main()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    finally:
        if _IS_INTERRUPTIBLE:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(command())
