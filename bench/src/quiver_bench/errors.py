"""What can go wrong in a way that the reader of the message can do something about."""

from __future__ import annotations


class BenchError(Exception):
    """Base of the errors that end a run, or a part of one, with one line."""


class ConfigError(BenchError):
    """A suite or an argument is not one."""


class DataError(BenchError):
    """The data asked for is not there or not what it says it is."""


class MeasureError(BenchError):
    """A measurement did not measure what it was meant to."""


class EngineError(BenchError):
    """An engine did not do what it was asked."""


class MissingError(EngineError):
    """An engine is not on this machine; the message says what would bring it."""


class UnsupportedError(EngineError):
    """An engine has no way to do this; the message says what."""
