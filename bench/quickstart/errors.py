"""What can go wrong in a way that the reader of the message can do something about."""

from __future__ import annotations


class QuickstartError(Exception):
    """Base of the errors that end the run with one line."""


class DataError(QuickstartError):
    """The data asked for is not there or not what it says it is."""


class MeasureError(QuickstartError):
    """A measurement did not measure what it was meant to."""
