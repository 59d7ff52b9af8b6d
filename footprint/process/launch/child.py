"""The new process, from fork to exec."""

import os
import signal
from collections.abc import Sequence
from typing import NoReturn

__all__ = ("become", "fill_standard_descriptors")


def become(
    executable: str,
    command: Sequence[str],
    opening: int,
    errors: int,
    streams: tuple[str | None, int, int],
    mask: set[int],
) -> NoReturn:
    """Wait at the gate, then execute the program; write the cause to `errors` where that fails.

    Args:
        executable: The file to run, searched in PATH where it names no directory.
        command: Its argv.
        opening: The read end of the gate.
        errors: The descriptor for the error number.
        streams: The file for its standard input, None for ours; the descriptors of its standard output and error.
        mask: The signals that are blocked at its start.
    """
    try:
        os.setsid()
        input_path, output_end, error_end = streams
        if input_path is not None:
            os.dup2(os.open(input_path, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC), 0)
        os.dup2(output_end, 1)
        os.dup2(error_end, 2)
        # Python ignores these signals, and the program would inherit that.
        for name in ("SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        if os.read(opening, 1):
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.execvp(executable, list(command))  # noqa: S606 # the purpose of the caller
    except OSError as error:
        os.write(errors, str(error.errno).encode())
    except BaseException:  # noqa: BLE001 # no handler of the parent may run here
        os.write(errors, b"?")
    finally:
        os._exit(127)


def fill_standard_descriptors() -> None:
    """Open standard descriptors that are closed, so that no pipe of ours gets their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
