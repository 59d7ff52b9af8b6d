"""What holds for all tests."""

from hypothesis import settings

# How long an example takes tells of the machine, and of who else is at work there.
settings.register_profile("footprint", deadline=None)
settings.load_profile("footprint")
