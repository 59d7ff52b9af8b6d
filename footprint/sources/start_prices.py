"""The prices of a start: as they were fitted on this machine and kept in a file, else as built in."""

from typing import Final

from footprint.attribution.start_time import PRICE_COUNT, StartPrices, built_in_prices, calibrated_prices
from footprint.sources.calibration import keep, kept_path, read_kept

_FILE: Final = "start.json"
_TABLE: Final = "systems"
_NAMES: Final = StartPrices._fields[:PRICE_COUNT]
_MOST_NS: Final = 10**9


def load_start_prices(system: str) -> StartPrices:
    """Return the prices of a start of programs of a system: as calibrated, else as built in, also where it is damaged.

    `system` is what `start_system` names.
    """
    built_in = built_in_prices(system)
    try:
        stored = read_kept(kept_path(_FILE), _TABLE).get(system)
    except (OSError, ValueError):
        return built_in
    values = [stored.get(name) for name in _NAMES] if isinstance(stored, dict) else []
    if not values or any(type(value) is not int or not 0 <= value < _MOST_NS for value in values):
        return built_in
    return calibrated_prices([int(value) for value in values if value is not None], system)


def keep_start_prices(prices: StartPrices) -> None:
    """Keep prices for the system that they were fitted to.

    Raises:
        AccessError: Where the file cannot be written.
    """
    keep(kept_path(_FILE), _TABLE, {prices.system: dict(zip(_NAMES, prices.each_ns, strict=True))})
