"""Choose how many examples a property is tried with."""

from collections.abc import Sequence

from hypothesis import HealthCheck, settings


def examples(count: int, *, suppressed: Sequence[HealthCheck] = ()) -> settings:
    """Return settings with a number of examples: `count` in the profile `ci`, a quarter of it in the profile `dev`."""
    share = settings().max_examples / settings.get_profile("ci").max_examples
    return settings(max_examples=max(1, round(count * share)), suppress_health_check=suppressed)
