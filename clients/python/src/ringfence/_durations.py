"""Durations that users give: a ``timedelta``, or a number of seconds."""

from __future__ import annotations

from datetime import timedelta
from typing import Optional, Union

from .errors import InvalidInput

#: A ``timedelta``, or a number of seconds.
Duration = Union[float, timedelta]

#: The longest, in seconds: ten years, which is the longest ``hold_for``.
_MAX = 10 * 365 * 24 * 3600.0

#: The bounds of a client's `timeout`, in seconds. gRPC counts it in ms.
_TIMEOUT_MIN, _TIMEOUT_MAX = 0.001, 24 * 3600.0


def seconds(field: str, value: Optional[Duration]) -> Optional[float]:
    """A duration in seconds, from zero on. None stays None."""
    return None if value is None else _within(field, value, 0, _MAX)


def timeout_seconds(value: Duration) -> float:
    """The timeout of a client, in seconds."""
    return _within("timeout", value, _TIMEOUT_MIN, _TIMEOUT_MAX)


def _within(field: str, value: Duration, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, timedelta)):
        raise TypeError(f"{field} is {value!r}, must be a timedelta or a number of seconds")
    length = value.total_seconds() if isinstance(value, timedelta) else value
    if not least <= length <= most:  # true of NaN, too
        raise InvalidInput.of(field, f"{length} s", f"{least:g} to {most:.0f} s")
    return float(length)
