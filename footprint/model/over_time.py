"""What a watch says of its processes over time, beside the audit of one moment."""

from typing import NamedTuple

__all__ = ("OverTime",)


class OverTime(NamedTuple):
    """The figures of a series.

    Attributes:
        peak_bytes: The largest cost at a tick, or the peak of the cgroup.
        usual_most_bytes: The cost that was not exceeded in 95 % of the time.
        hourly_growth_bytes: The growth of the cost in an hour: the lower end of its interval; 0 where it does not grow,
            None where there are too few values.
        most_process_count: The largest number of processes at a time.
    """

    peak_bytes: int
    usual_most_bytes: int
    hourly_growth_bytes: int | None
    most_process_count: int
