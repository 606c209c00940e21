"""Kernels for NVIDIA GPUs, which are called on arrays in the memory of a GPU: those of CuPy and PyTorch, and others by
DLPack, without copies. The driver is called directly, so neither CUDA's toolkit nor its runtime is needed."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import json
import math
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence

from . import _arrays, errors
from ._kernel import Kernel, artifact_sections
from ._workload import Tensor

if TYPE_CHECKING:
    from ._best import Best
    from ._job import Job
    from ._workload import Workload

_ON_GPU = (2, 13)  # DLPack's kinds of devices: the memory of a GPU, and memory that CUDA moves to it
_ALIGNMENT = 16  # bytes of the widest access of a kernel
_DEFAULT_STREAM = 1  # DLPack's number and CUDA's handle of the default stream that waits for others
_MAGIC = b"HONEGPU1\n"  # common/target/gpu_module.h
_NO_BINARY_FOR_GPU = 209
# Attributes of functions.
_MAX_THREADS, _SHARED_BYTES, _MAX_DYNAMIC_SHARED_BYTES = 0, 1, 8
_COMMON_SHARED_BYTES = 48 << 10  # a launch gets more only on request
# DLPack's codes and bits of elements. Types that a library does not have are unsigned integers with their bits.
_TYPES = {
    "f16": [(2, 16)], "f32": [(2, 32)], "f64": [(2, 64)], "i8": [(0, 8)], "u8": [(1, 8)], "i32": [(0, 32)], "i64": [(0, 64)],
    "bool": [(6, 8), (1, 8)], "bf16": [(4, 16), (1, 16)], "f8e4m3": [(10, 8), (1, 8)], "f8e5m2": [(12, 8), (1, 8)],
    "i4": [(1, 8)], "u4": [(1, 8)],
}
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
# PyTorch's names of types that NumPy does not have.
_TORCH_TYPES = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}


class _DLTensor(ctypes.Structure):
    """The view of an array in DLPack's capsules."""

    _fields_ = [("data", ctypes.c_void_p), ("device_kind", ctypes.c_int32), ("device", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("offset", ctypes.c_uint64)]


_pointer_of_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of_capsule.restype = ctypes.c_void_p
_pointer_of_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _Driver:
    """The functions of libcuda that this package calls. Each GPU has one context, which CUDA's runtime shares."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise errors.Failed(f"CUDA cannot be used: {error}; install NVIDIA's driver") from None
        self._contexts: dict[int, ctypes.c_void_p] = {}
        self._lock = threading.Lock()
        self.call("cuInit", 0)

    def code(self, name: str, *arguments: Any) -> int:
        """Calls a function. Python's integers are C's int."""
        function = getattr(self._library, name, None)
        if function is None:
            raise errors.Failed(f"libcuda.so.1 has no {name}; install a driver for CUDA 12 or later")
        return int(function(*arguments))

    def call(self, name: str, *arguments: Any, what: str = "") -> None:
        self.check(self.code(name, *arguments), what or name)

    def check(self, code: int, what: str) -> None:
        if code == 0:
            return
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(text))
        raise errors.Failed(f"{what}: {(text.value or b'unknown').decode()} (error {code} of CUDA)")

    @contextlib.contextmanager
    def on(self, device: int) -> Iterator[None]:
        """The calls of this thread are for this GPU."""
        with self._lock:
            if device not in self._contexts:
                number, context = ctypes.c_int(), ctypes.c_void_p()
                self.call("cuDeviceGet", ctypes.byref(number), device, what=f"find GPU {device}")
                self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number, what=f"use GPU {device}")
                self._contexts[device] = context
        self.call("cuCtxPushCurrent_v2", self._contexts[device])
        try:
            yield
        finally:
            self.code("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


@functools.lru_cache(maxsize=None)
def _driver() -> _Driver:
    return _Driver()


class _Memory:
    """Memory of a GPU, which is freed with this object."""

    def __init__(self, device: int, size: int) -> None:
        pointer = ctypes.c_uint64()
        with _driver().on(device):
            _driver().call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size), what=f"allocate {size} bytes")
        self.pointer = pointer.value
        weakref.finalize(self, _Memory._free, device, self.pointer).atexit = False  # the driver may be gone then

    @staticmethod
    def _free(device: int, pointer: int) -> None:
        with contextlib.suppress(errors.Failed), _driver().on(device):
            _driver().code("cuMemFree_v2", ctypes.c_uint64(pointer))


@dataclass(frozen=True)
class _Launch:
    name: str
    function: ctypes.c_void_p
    sizes: tuple[int, ...]  # grid, then block
    dynamic_bytes: int  # shared memory that the code does not declare itself
    packs: bool


class _Code:
    """The kernels of an artifact, and where they are loaded."""

    def __init__(self, artifact: bytes, workload: Workload) -> None:
        sections = artifact_sections(artifact, workload)
        if not sections[0].startswith(_MAGIC):
            raise errors.Failed("the kernel is not for a GPU; tune it again")
        description, _, self._binary = sections[0][len(_MAGIC):].partition(b"\n")
        facts = json.loads(description)
        if facts["version"] != 1 or facts["kind"] != "cuda":
            raise errors.Failed(f"the kernel is of the kind {facts['kind']}, which Python does not call; hone export writes its files")
        self._portable = json.loads(sections[1])["assembly"].encode() if sections[1] else b""
        self._launches = facts["launches"]
        self.packed_bytes = int(facts["packed_bytes"])
        self.workspace_bytes = int(facts["workspace_bytes"])
        reads = sections[6].decode() if len(sections) > 6 else ""
        # Whether a run reads a constant itself, or only its packed form.
        self.reads = {one.name: reads[i:i + 1] != "0" for i, one in enumerate(workload.inputs)}
        self._lock = threading.Lock()
        self._loaded: dict[int, list[_Launch]] = {}

    def on(self, device: int) -> list[_Launch]:
        """The launches on a GPU, whose context is current. The code stays loaded: kernels may still run."""
        with self._lock:
            if device not in self._loaded:
                self._loaded[device] = self._load()
            return self._loaded[device]

    def _load(self) -> list[_Launch]:
        driver = _driver()
        module = ctypes.c_void_p()
        code = driver.code("cuModuleLoadData", ctypes.byref(module), self._binary)
        if code == _NO_BINARY_FOR_GPU and self._portable:
            code = driver.code("cuModuleLoadData", ctypes.byref(module), self._portable + b"\0")
        driver.check(code, "load the kernel, which was tuned for another GPU" if code == _NO_BINARY_FOR_GPU else "load the kernel")
        return [self._prepared(module, one) for one in self._launches]

    @staticmethod
    def _prepared(module: ctypes.c_void_p, launch: dict[str, Any]) -> _Launch:
        driver, name = _driver(), str(launch["kernel"])
        function = ctypes.c_void_p()
        driver.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode(), what=f"find the kernel {name}")

        def attribute(number: int) -> int:
            value = ctypes.c_int()
            driver.call("cuFuncGetAttribute", ctypes.byref(value), number, function, what=name)
            return value.value

        threads, most = math.prod(launch["block"]), attribute(_MAX_THREADS)
        if threads > most:
            raise errors.Failed(f"the kernel {name} has blocks of {threads} threads, but the GPU has registers for only {most}; "
                                "tune it on this GPU")
        shared = int(launch["shared_bytes"])
        dynamic = max(shared - attribute(_SHARED_BYTES), 0)
        if shared > _COMMON_SHARED_BYTES and dynamic > attribute(_MAX_DYNAMIC_SHARED_BYTES):
            driver.call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED_BYTES, dynamic, what=f"reserve shared memory for {name}")
        return _Launch(name, function, (*launch["grid"], *launch["block"]), dynamic, bool(launch["prepack"]))


@dataclass(frozen=True)
class _Borrowed:
    """An array of the caller."""

    pointer: int
    bytes: int
    capsule: Any  # keeps the memory


def _device_of(tensor: Tensor, value: Any) -> int:
    """The number of the GPU that has an array. ArrayError: it is elsewhere."""
    if not hasattr(value, "__dlpack_device__"):
        raise errors.ArrayError(f"{tensor.name} is a {type(value).__name__}; give an array of CuPy, a CUDA tensor of PyTorch, or "
                                "another array on a GPU that has __dlpack__")
    kind, number = value.__dlpack_device__()
    if int(kind) not in _ON_GPU:
        where = "in the memory of the CPU" if int(kind) in (1, 3) else f"on a device of DLPack's kind {int(kind)}"
        raise errors.ArrayError(f"{tensor.name} is {where}, but the kernel runs on a GPU of NVIDIA; copy it there, as with "
                                f"cupy.asarray({tensor.name}) or {tensor.name}.cuda()")
    return int(number)


def _borrow(tensor: Tensor, value: Any, device: int, stream: int) -> _Borrowed:
    """The memory of an array, which is ready on the stream. ArrayError: its device, type, shape or strides are wrong."""
    found = _device_of(tensor, value)
    if found != device:
        raise errors.ArrayError(f"{tensor.name} is on GPU {found}, but this call is on GPU {device}, which has the other arrays; "
                                "copy it there")
    if getattr(value, "requires_grad", False):
        raise errors.ArrayError(f"{tensor.name} needs a gradient, which kernels do not have; give {tensor.name}.detach()")
    try:
        capsule = value.__dlpack__(stream=stream)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise errors.ArrayError(f"{tensor.name} cannot be used through DLPack: {error}") from None
    view = _DLTensor.from_address(_pointer_of_capsule(capsule, b"dltensor"))
    shape = tuple(view.shape[:view.rank])
    expected = f"{_arrays.DTYPES[tensor.dtype]}{list(_arrays.numpy_shape(tensor))}"
    if (view.code, view.bits) not in _TYPES[tensor.dtype] or view.lanes != 1:
        kind = _KINDS.get(view.code, f"type {view.code} of DLPack with bits ")
        raise errors.ArrayError(f"{tensor.name} has the type {kind}{view.bits}, but the kernel needs {expected}; convert it")
    if shape != _arrays.numpy_shape(tensor):
        raise errors.ArrayError(f"{tensor.name} has the shape {list(shape)}, but the kernel needs {expected}")
    dense = [math.prod(shape[place + 1:]) for place in range(len(shape))]
    if view.strides and any(extent > 1 and view.strides[place] != dense[place] for place, extent in enumerate(shape)):
        raise errors.ArrayError(f"{tensor.name} has the strides {view.strides[:view.rank]} in elements, but the kernel needs a dense "
                                "row-major array; copy it, as with cupy.ascontiguousarray or tensor.contiguous()")
    pointer = (view.data or 0) + view.offset
    if pointer % _ALIGNMENT != 0:
        raise errors.ArrayError(f"{tensor.name} begins at an address that is not a multiple of {_ALIGNMENT} bytes; copy it, as with "
                                "tensor.clone() or array.copy()")
    return _Borrowed(pointer, math.prod(shape) * view.bits // 8, capsule)


def _torch(device: int) -> tuple[int, Callable[[Tensor], Any]]:
    torch = importlib.import_module("torch")

    def empty(tensor: Tensor) -> Any:
        name = _TORCH_TYPES.get(tensor.dtype, _arrays.DTYPES[tensor.dtype])
        return torch.empty(_arrays.numpy_shape(tensor), dtype=getattr(torch, name), device=f"cuda:{device}")

    return int(torch.cuda.current_stream(device).cuda_stream), empty


def _cupy(device: int) -> tuple[int, Callable[[Tensor], Any]]:
    cupy = importlib.import_module("cupy")

    def empty(tensor: Tensor) -> Any:
        with cupy.cuda.Device(device):
            return cupy.empty(_arrays.numpy_shape(tensor), dtype=_arrays.DTYPES[tensor.dtype])

    with cupy.cuda.Device(device):
        return int(cupy.cuda.get_current_stream().ptr), empty


# Libraries with arrays on GPUs: the current stream on a GPU, and what makes an array for a tensor.
_LIBRARIES = {"torch": _torch, "cupy": _cupy}


def _library(values: Sequence[Any], device: int) -> tuple[int, Callable[[Tensor], Any] | None]:
    """The current stream of the library of the first array that is known, and what makes its arrays."""
    for value in values:
        found = _LIBRARIES.get(type(value).__module__.partition(".")[0])
        if found is not None:
            return found(device)
    return _DEFAULT_STREAM, None


class CudaKernel(Kernel):
    """The best kernel of a workload for a GPU of NVIDIA, which is loaded at its first call. Used by any number of threads."""

    def __init__(self, workload: Workload, best: Best, artifact: Callable[[], bytes], job: Job | None = None) -> None:
        super().__init__(workload, best, artifact, 0, job)
        self._code: _Code | None = None
        self._held: dict[str, _Memory] = {}  # constants that a run reads itself
        self._held_packed: _Memory | None = None
        self._device: int | None = None  # of the constants

    def _loaded_code(self) -> _Code:
        with self._lock:
            if self._code is None:
                self._code = _Code(self._artifact(), self.workload)
            return self._code

    def with_constants(self, **constants: Any) -> CudaKernel:
        """The kernel with the values of constant inputs, which it packs once on their GPU. Calls then take the other inputs."""
        code = self._loaded_code()
        known = self._checked_constants(constants)
        bound = CudaKernel(self.workload, self.best, self._artifact, self.job)
        bound._code = code
        if not constants:
            return bound  # the kernel has none, so that there is nothing on a GPU yet
        device, handle, _ = self._place([known[name] for name in constants], list(constants.values()), None)
        with _driver().on(device):
            given = {name: _borrow(known[name], value, device, handle) for name, value in constants.items()}
            pointers = {name: one.pointer for name, one in given.items()}
            if code.packed_bytes > 0:
                bound._held_packed = _Memory(device, code.packed_bytes)
                with _scratch(code.workspace_bytes, handle) as workspace:
                    self._launch(code, device, handle, pointers, bound._held_packed.pointer, workspace, packs=True)
            # Copies: a caller that changes its array afterwards would change only what is not packed.
            for name, one in given.items():
                if code.reads[name] and one.bytes > 0:
                    bound._held[name] = _Memory(device, one.bytes)
                    _driver().call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(bound._held[name].pointer), ctypes.c_uint64(one.pointer),
                                   ctypes.c_size_t(one.bytes), _handle(handle), what=f"copy {name}")
            _driver().call("cuStreamSynchronize", _handle(handle), what="pack the constants")
        bound._bound = frozenset(constants)
        bound._device = device
        return bound

    def __call__(self, *inputs: Any, out: Any = None, stream: int | None = None) -> Any:
        """Puts the kernel on a stream, and returns its output, or the tuple of outputs, without waiting for it.

        The inputs are arrays on one GPU, which the kernel reads in place: of CuPy, of PyTorch, or others that have
        __dlpack__. The outputs are arrays of CuPy or PyTorch, as the inputs are, or those given as `out`. `stream`: the
        handle of a CUDA stream; None: the current one of CuPy or PyTorch, or else the default stream."""
        code = self._loaded_code()
        expected = self.inputs
        if len(inputs) != len(expected):
            names = ", ".join(str(one) for one in expected)
            raise errors.InvalidArgument(f"{len(inputs)} arrays are given, but the kernel needs {names}")
        listed: Sequence[Any] = () if out is None else out if isinstance(out, (list, tuple)) else [out]
        if out is not None and len(listed) != len(self.outputs):
            raise errors.InvalidArgument(f"out has {len(listed)} arrays, but the kernel has {len(self.outputs)} outputs")
        device, handle, empty = self._place([*expected, *self.outputs], [*inputs, *listed], stream)
        if out is None:
            if empty is None:
                raise errors.InvalidArgument("the inputs are arrays neither of CuPy nor of PyTorch, so the kernel cannot make its "
                                             f"outputs; give arrays for them, as out=({', '.join(map(str, self.outputs))})")
            listed = [empty(one) for one in self.outputs]
        with _driver().on(device):
            read = {one.name: _borrow(one, value, device, handle) for one, value in zip(expected, inputs)}
            written = {one.name: _borrow(one, value, device, handle) for one, value in zip(self.outputs, listed)}
            _refuse_overlaps(read, written)
            pointers = {name: one.pointer for name, one in {**read, **written}.items()}
            self._run(code, device, handle, pointers)
        if out is not None:
            return out
        return listed[0] if len(listed) == 1 else tuple(listed)

    def _place(self, tensors: Sequence[Tensor], values: Sequence[Any],
               stream: int | None) -> tuple[int, int, Callable[[Tensor], Any] | None]:
        """The GPU of the arrays, the stream, and what makes arrays of their library."""
        device = self._device
        for one, value in zip(tensors, values):
            found = _device_of(one, value)
            if self._device is not None and found != self._device:
                raise errors.ArrayError(f"{one.name} is on GPU {found}, but the constants of the kernel are on GPU {self._device}")
            device = found if device is None else device
        if device is None:
            raise errors.InvalidArgument("the kernel has no inputs; give an array for its output with out=")
        current, empty = _library(values, device)
        return device, (current if stream is None else stream) or _DEFAULT_STREAM, empty

    def _run(self, code: _Code, device: int, stream: int, pointers: dict[str, int]) -> None:
        with contextlib.ExitStack() as memory:
            packed = self._held_packed.pointer if self._held_packed is not None else 0
            pointers.update({name: one.pointer for name, one in self._held.items()})
            workspace = memory.enter_context(_scratch(code.workspace_bytes, stream))
            if code.packed_bytes > 0 and packed == 0:
                packed = memory.enter_context(_scratch(code.packed_bytes, stream))
                self._launch(code, device, stream, pointers, packed, workspace, packs=True)
            self._launch(code, device, stream, pointers, packed, workspace, packs=False)

    def _launch(self, code: _Code, device: int, stream: int, pointers: dict[str, int], packed: int, workspace: int,
                packs: bool) -> None:
        """Every launch has the same parameters: the arrays in order, the packed constants and the workspace."""
        values = [*(pointers.get(one.name, 0) for one in self.workload.tensors), packed, workspace]
        kept = (ctypes.c_uint64 * len(values))(*values)
        begin = ctypes.addressof(kept)
        parameters = (ctypes.c_void_p * len(values))(*(begin + 8 * place for place in range(len(values))))
        for one in code.on(device):
            if one.packs == packs:
                _driver().call("cuLaunchKernel", one.function, *(ctypes.c_uint(size) for size in one.sizes),
                               ctypes.c_uint(one.dynamic_bytes), _handle(stream), parameters, None, what=f"run the kernel {one.name}")


def _handle(stream: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if stream == _DEFAULT_STREAM else stream)


@contextlib.contextmanager
def _scratch(size: int, stream: int) -> Iterator[int]:
    """Memory for the next launches on the stream, which is free for others when they have run."""
    if size == 0:
        yield 0
        return
    pointer = ctypes.c_uint64()
    _driver().call("cuMemAllocAsync", ctypes.byref(pointer), ctypes.c_size_t(size), _handle(stream), what=f"allocate {size} bytes")
    try:
        yield pointer.value
    finally:
        _driver().code("cuMemFreeAsync", pointer, _handle(stream))


def _refuse_overlaps(read: dict[str, _Borrowed], written: dict[str, _Borrowed]) -> None:
    for name, one in written.items():
        others = {**read, **{other: memory for other, memory in written.items() if other != name}}
        for other, memory in others.items():
            if one.pointer < memory.pointer + memory.bytes and memory.pointer < one.pointer + one.bytes:
                raise errors.ArrayError(f"the array for the output {name} overlaps {other}")
