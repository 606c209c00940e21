"""Kernels that are called from Python: the measured shared object, loaded into this process."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import struct
import threading
from typing import TYPE_CHECKING, Any, Callable, Sequence

import numpy

from . import _arrays, _programs, errors
from ._workload import Tensor, Workload

if TYPE_CHECKING:
    from ._best import Best
    from ._job import Job

_ABI = 2  # common/target/kernel_abi.h
_ARTIFACT_VERSION = 2
_STATUS = {
    1: "this CPU lacks a feature that the kernel uses; tune on this machine",
    2: "a buffer is not aligned to 64 bytes",
    3: "an output overlaps another array",
}


class _Runtime(ctypes.Structure):
    _fields_ = [("parallel_for", ctypes.c_void_p), ("threads", ctypes.c_int32)]


@functools.lru_cache(maxsize=None)
def _threads_library() -> ctypes.CDLL:
    """libhone_lookup, for its pool of threads. It stays loaded: threads may be in it."""
    library = ctypes.CDLL(str(_programs.file("lib/libhone_lookup.so")))
    library.hone_lookup_threads.restype = _Runtime
    library.hone_lookup_threads.argtypes = [ctypes.c_int32]
    return library


def _sections(artifact: bytes) -> list[bytes]:
    """The parts of an artifact (common/record/artifact.h): the shared object, the object, the workload, …"""
    header = struct.Struct("<8sII")
    if len(artifact) < header.size:
        raise errors.Failed("the kernel's artifact is cut off")
    magic, version, count = header.unpack_from(artifact)
    if magic != b"HONEKERN" or version != _ARTIFACT_VERSION or count < 3:
        raise errors.Failed("the kernel's artifact is of another version of Hone; tune it again")
    lengths = struct.unpack_from(f"<{count}Q", artifact, header.size)
    ends = list(itertools.accumulate(lengths, initial=header.size + 8 * count))
    if ends[-1] != len(artifact):
        raise errors.Failed("the kernel's artifact is cut off")
    return [artifact[begin:end] for begin, end in zip(ends, ends[1:])]


def artifact_sections(artifact: bytes, workload: Workload) -> list[bytes]:
    """The parts of an artifact, which must be of the workload."""
    sections = _sections(artifact)
    if sections[2].decode() != workload.text:
        raise errors.Failed(f"the artifact is of another workload than {workload.name}; tune it again")
    return sections


def _load(artifact: bytes, workload: Workload) -> ctypes.CDLL:
    sections = artifact_sections(artifact, workload)
    if not sections[0].startswith(b"\x7fELF"):
        raise errors.Failed("the kernel is for a GPU; hone export writes its files")
    # A loader that has seen the name of a file returns its library again, so the file stays open as long as this process.
    file = os.memfd_create("hone-kernel")
    view = memoryview(sections[0])
    while view:
        view = view[os.write(file, view):]
    try:
        library = ctypes.CDLL(f"/proc/self/fd/{file}")
    except OSError as error:
        os.close(file)
        raise errors.Failed(f"the kernel cannot be loaded: {error}") from None
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    for symbol, result, arguments in [
        ("abi", ctypes.c_int32, []),
        ("packed_bytes", size, []),
        ("workspace_bytes", size, [ctypes.c_int32]),
        ("prepack", ctypes.c_int32, [pointer, pointer]),
        ("run", ctypes.c_int32, [pointer, pointer, pointer, pointer]),
    ]:
        function = getattr(library, f"hone_kernel_{symbol}", None)
        if function is None:
            raise errors.Failed(f"the kernel has no function hone_kernel_{symbol}; tune it again")
        function.restype, function.argtypes = result, arguments
    if library.hone_kernel_abi() != _ABI:
        raise errors.Failed("the kernel is of another version of Hone; tune it again")
    return library


class Kernel:
    """The best kernel of a workload, which is loaded at its first call. Used by any number of threads."""

    def __init__(self, workload: Workload, best: Best, artifact: Callable[[], bytes], threads: int = 0,
                 job: Job | None = None) -> None:
        """`artifact` returns the bytes of the shared object. `threads` 0: OMP_NUM_THREADS, or the usable CPUs."""
        self.workload = workload
        self.best = best
        self.job = job
        self._artifact = artifact
        self._count = threads
        self._lock = threading.Lock()
        self._library: ctypes.CDLL | None = None
        self._runtime = _Runtime()
        self._workspaces: list[numpy.ndarray[Any, Any]] = []
        self._bound: frozenset[str] = frozenset()  # inputs with constant values
        self._constants: dict[str, numpy.ndarray[Any, Any]] = {}
        self._packed: numpy.ndarray[Any, Any] | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The arrays that a call takes."""
        return tuple(one for one in self.workload.inputs if one.name not in self._bound)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return self.workload.outputs

    def __repr__(self) -> str:
        return f"<hone.Kernel {self.workload.name}: {self.best}>"

    def _repr_html_(self) -> str:
        return self.best._repr_html_()

    def _loaded(self) -> ctypes.CDLL:
        with self._lock:
            if self._library is None:
                library = _load(self._artifact(), self.workload)
                self._runtime = _threads_library().hone_lookup_threads(self._count)
                self._library = library
            return self._library

    def with_constants(self, **constants: Any) -> Kernel:
        """The kernel with the values of constant inputs, which it packs once. Calls then take the other inputs."""
        library = self._loaded()
        known = self._checked_constants(constants)
        bound = Kernel(self.workload, self.best, self._artifact, self._count, self.job)
        bound._library, bound._runtime = library, self._runtime
        bound._bound = frozenset(constants)
        # Copies: a caller that changes its array afterwards would change only what is not packed.
        for name, value in constants.items():
            array = _arrays.borrowed(known[name], value)
            bound._constants[name] = _arrays.empty(array.shape, str(array.dtype))
            bound._constants[name][...] = array
        bound._packed = bound._pack(bound._constants)
        return bound

    def _checked_constants(self, constants: dict[str, Any]) -> dict[str, Tensor]:
        """The constant inputs by name, of which all must be given."""
        known = {one.name: one for one in self.workload.inputs if one.is_constant}
        if unknown := sorted(set(constants) - set(known)):
            raise errors.InvalidArgument(
                f"{unknown[0]} is not a constant input; those of {self.workload.name} are {', '.join(known) or 'none'}"
            )
        if missing := sorted(set(known) - set(constants)):
            raise errors.InvalidArgument(f"the constant {known[missing[0]]} is missing")
        return known

    def _pack(self, values: dict[str, numpy.ndarray[Any, Any]]) -> numpy.ndarray[Any, Any] | None:
        library = self._loaded()
        size = library.hone_kernel_packed_bytes()
        if size == 0:
            return None
        packed = _arrays.empty((size,), "uint8")
        self._check(library.hone_kernel_prepack(self._pointers(values), packed.ctypes.data))
        return packed

    def _pointers(self, values: dict[str, numpy.ndarray[Any, Any]]) -> Any:
        found = [values.get(one.name) for one in self.workload.tensors]
        return (ctypes.c_void_p * len(found))(*[None if one is None else one.ctypes.data for one in found])

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """Returns the output, or the tuple of outputs: arrays of the library of the inputs (NumPy, PyTorch, JAX).

        The kernel reads the memory of the inputs itself if it begins at a multiple of 64 bytes, as in hone.empty and the
        tensors of PyTorch and JAX; other inputs are copied first. `out`: an array, or a sequence of arrays, to write to."""
        library = self._loaded()
        expected = self.inputs
        if len(inputs) != len(expected):
            names = ", ".join(str(one) for one in expected)
            raise errors.InvalidArgument(f"{len(inputs)} arrays are given, but the kernel needs {names}")
        borrowed = {one.name: _arrays.borrowed(one, value) for one, value in zip(expected, inputs)}
        values = {name: _arrays.aligned(array) for name, array in borrowed.items()}
        values.update(self._constants)
        packed = self._packed if self._constants else self._pack(values)
        results, given = self._results(out, borrowed)
        values.update(results)
        workspace = self._take_workspace(library)
        try:
            self._check(library.hone_kernel_run(
                self._pointers(values), None if packed is None else packed.ctypes.data, workspace.ctypes.data,
                ctypes.byref(self._runtime),
            ))
        finally:
            self._workspaces.append(workspace)
        if given is not None:
            for one, array in zip(self.outputs, given):
                if array is not results[one.name]:
                    array[...] = results[one.name]
            return out
        convert = _arrays.converter(_arrays.library_of(inputs))
        made = tuple(convert(results[one.name]) for one in self.outputs)
        return made[0] if len(made) == 1 else made

    def _results(self, out: Any, inputs: dict[str, numpy.ndarray[Any, Any]]) -> tuple[
            dict[str, numpy.ndarray[Any, Any]], list[numpy.ndarray[Any, Any]] | None]:
        """The arrays that the kernel writes, and those of the caller, which get copies if they are not aligned."""
        if out is None:
            return {one.name: _arrays.empty(_arrays.numpy_shape(one), one.dtype) for one in self.outputs}, None
        listed: Sequence[Any] = out if isinstance(out, (list, tuple)) else [out]
        if len(listed) != len(self.outputs):
            raise errors.InvalidArgument(f"out has {len(listed)} arrays, but the kernel has {len(self.outputs)} outputs")
        given = [_arrays.borrowed(one, value) for one, value in zip(self.outputs, listed)]
        for one, array in zip(self.outputs, given):
            if not array.flags.writeable:
                raise errors.ArrayError(f"the array for the output {one.name} is read-only")
            if clash := next((name for name, read in inputs.items() if numpy.may_share_memory(read, array)), None):
                raise errors.ArrayError(f"the array for the output {one.name} overlaps the input {clash}")
        results = {
            one.name: array if array.ctypes.data % _arrays.ALIGNMENT == 0 else _arrays.empty(array.shape, one.dtype)
            for one, array in zip(self.outputs, given)
        }
        return results, given

    def _take_workspace(self, library: ctypes.CDLL) -> numpy.ndarray[Any, Any]:
        """Memory that no other call uses."""
        try:
            return self._workspaces.pop()
        except IndexError:
            return _arrays.empty((max(1, library.hone_kernel_workspace_bytes(self._runtime.threads)),), "uint8")

    @staticmethod
    def _check(status: int) -> None:
        if status != 0:
            raise errors.Failed(_STATUS.get(status, f"the kernel returned {status}"))
