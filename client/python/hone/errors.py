"""The exceptions of Hone. Each message says what is wrong, where, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._job import Job


class Error(Exception):
    """The base of all exceptions of this package."""


class InvalidArgument(Error, ValueError):
    """An argument is wrong, such as an unknown operator, key or target."""


class ArrayError(InvalidArgument, TypeError):
    """An array has another type, shape, layout or device than the kernel needs."""


class NothingKnown(Error, LookupError):
    """The question is valid, but the store has no answer, such as no tuned kernel."""


class PermissionDenied(Error, PermissionError):
    """The token or certificate is missing, or does not allow this call."""


class ServerUnavailable(Error, ConnectionError):
    """The server does not answer, or its connection is not trusted."""


class Forked(Error, RuntimeError):
    """This process was forked from one that had a connection, which it cannot use."""


class Failed(Error, RuntimeError):
    """Everything else, such as a job that found no valid kernel."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a search. What was measured is stored, and `job` has the best found."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"interrupted; {job}")
        self.job = job
