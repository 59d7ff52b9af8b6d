"""What holds for all tests."""

import signal

from hypothesis import settings

# How long an example takes tells of the machine, and of who else is at work there.
settings.register_profile("footprint", deadline=None)
settings.load_profile("footprint")

# A suite that a shell runs in the background ignores interrupts, and what it starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
