"""The new process, from the fork to the program."""

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
    """Turn the new process into the program when the gate opens; where that fails, tell why.

    Args:
        executable: The file to run, looked for in PATH where it names no directory.
        command: What it is told to be called, and its arguments.
        opening: The gate.
        errors: Where to tell why it failed.
        streams: What to open as its standard input, None for ours; its standard output and error.
        mask: The signals that it begins with blocked.
    """
    try:
        os.setsid()
        input_path, output_end, error_end = streams
        if input_path is not None:
            os.dup2(os.open(input_path, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC), 0)
        os.dup2(output_end, 1)
        os.dup2(error_end, 2)
        # Python ignores these, and a program would inherit that.
        for name in ("SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        if os.read(opening, 1):
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.execvp(executable, list(command))  # noqa: S606 # this verb's purpose is to run it
    except OSError as error:
        os.write(errors, str(error.errno).encode())
    except BaseException:  # noqa: BLE001 # nothing of the parent's may run here
        os.write(errors, b"?")
    finally:
        os._exit(127)


def fill_standard_descriptors() -> None:
    """Open what is closed of input, output and error, or a pipe of ours would be taken for it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
