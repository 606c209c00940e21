"""Hone tunes tensor programs: it searches for the fastest schedule on this machine, and returns a kernel to call.

The functions below use one client of the process, which `connect` replaces.
"""

from __future__ import annotations

import os as _os
import threading as _threading
from pathlib import Path as _Path
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any
from typing import Literal as _Literal
from typing import overload as _overload

from . import cache, plot
from ._arrays import empty
from ._best import Best
from ._client import Client, SearchOptions, Source
from ._cuda import CudaKernel
from .errors import (ArrayError, Error, Failed, Forked, Interrupted, InvalidArgument, NothingKnown, PermissionDenied,
                     ServerUnavailable)
from ._job import Job
from ._kernel import Kernel
from ._network import Network, Networks
from ._proposals import Trial, Verdict
from ._records import Records
from ._workload import Axis, Builder, Tensor, Workload, fn, over, within

if _TYPE_CHECKING:
    from typing_extensions import Unpack as _Unpack

__version__ = "0.1.0"
__all__ = [
    "ArrayError", "Axis", "Best", "Builder", "Client", "CudaKernel", "Error", "Failed", "Forked", "Interrupted", "InvalidArgument",
    "Job", "Kernel", "Network", "Networks", "NothingKnown", "PermissionDenied", "Records", "SearchOptions", "ServerUnavailable", "Tensor",
    "Trial", "Verdict", "Workload", "best", "cache", "client", "connect", "empty", "export", "fn", "load", "over", "plot", "records", "tune", "within",
]

_lock = _threading.Lock()
_used: Client | None = None


def client() -> Client:
    """The client of the functions of this module."""
    global _used
    with _lock:
        if _used is None:
            _used = Client()
        return _used


def connect(server: str = "", **settings: _Any) -> Client:
    """Uses another server from now on. The arguments are those of Client."""
    global _used
    made = Client(server, **settings)
    with _lock:
        previous, _used = _used, made
    if previous is not None:
        previous.close()
    return made


@_overload
def tune(workload: Source, *, wait: _Literal[True] = True, progress: bool | None = None,
         **options: _Unpack[SearchOptions]) -> Kernel | Network | Networks: ...


@_overload
def tune(workload: Source, *, wait: _Literal[False], progress: bool | None = None,
         **options: _Unpack[SearchOptions]) -> Job | list[Job]: ...


def tune(workload: Source, *, wait: bool = True, progress: bool | None = None,
         **options: _Any) -> Kernel | Network | Networks | Job | list[Job]:
    made: Kernel | Network | Networks | Job | list[Job] = client().tune(workload, wait=wait, progress=progress, **options)  # type: ignore[call-overload]
    return made


def best(workload: Source, **options: _Any) -> Best:
    return client().best(workload, **options)


def load(workload: Source, **options: _Any) -> Kernel | Network | Networks:
    return client().load(workload, **options)


def export(workload: Source, folder: str | _os.PathLike[str], **options: _Any) -> list[_Path]:
    return client().export(workload, folder, **options)


def records(**options: _Any) -> Records:
    return client().records(**options)


for _name in ("tune", "best", "load", "export", "records"):
    globals()[_name].__doc__ = getattr(Client, _name).__doc__
