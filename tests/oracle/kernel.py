"""Calls a kernel through its C interface (common/target/kernel_abi.h), and checks the memory around
its buffers."""
import _ctypes
import ctypes
import mmap

import numpy as np

ALIGNMENT = 64
OK, UNSUPPORTED_CPU, MISALIGNED_BUFFER = 0, 1, 2
_PAGE = mmap.PAGESIZE
_CANARY = 256  # bytes on each side that has no protected page
_CANARY_BYTE = 0xC5

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def openmp():
    """The OpenMP runtime of the kernels. The loader has only one copy of a library of this name."""
    return ctypes.CDLL("libgomp.so.1", mode=ctypes.RTLD_GLOBAL)


class Buffer:
    """The memory of a tensor between canaries, with a protected page before and after it.

    `place` "end": the buffer ends where a protected page begins, as far as its alignment allows.
    "begin": it begins where a protected page ends. "odd": in the middle, at an odd multiple of the
    alignment.
    """

    def __init__(self, size, place):
        pages = -(-(size + 2 * _CANARY + 2 * ALIGNMENT) // _PAGE) + 2
        self._map = mmap.mmap(-1, pages * _PAGE)
        whole = np.frombuffer(self._map, np.uint8)
        base = whole.ctypes.data
        for page in (0, pages - 1):
            if _libc.mprotect(base + page * _PAGE, _PAGE, 0) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")
        self._room = whole[_PAGE:(pages - 1) * _PAGE]
        if place == "end":
            self._begin = (len(self._room) - size) // ALIGNMENT * ALIGNMENT
        elif place == "begin":
            self._begin = 0
        else:
            self._begin = _CANARY + ALIGNMENT
        self._end = self._begin + size
        self.data = self._room[self._begin:self._end]
        self._room[:] = _CANARY_BYTE

    @property
    def address(self):
        return self._room.ctypes.data + self._begin

    def fill(self, content):
        """`content`: a byte, or an array with the bytes."""
        if isinstance(content, int):
            self.data[:] = content
        else:
            self.data[:] = np.ascontiguousarray(content).reshape(-1).view(np.uint8)

    def overrun(self):
        """Returns where bytes outside the buffer changed, or ""."""
        before = self._room[:self._begin] != _CANARY_BYTE
        behind = self._room[self._end:] != _CANARY_BYTE
        if before.any():
            return f"{len(before) - int(np.argmax(before))} bytes before its begin"
        if behind.any():
            return f"{len(behind) - int(np.argmax(behind[::-1]))} bytes behind its end"
        return ""


class Kernel:
    """A loaded kernel. Not closing them uses up the memory mappings of a process in long runs."""

    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        for name in ("workspace_bytes", "packed_bytes", "range_extent"):
            getattr(self._library, "hone_kernel_" + name).restype = ctypes.c_int64
        self.abi = self._library.hone_kernel_abi()
        self.workspace_bytes = self._library.hone_kernel_workspace_bytes()
        self.packed_bytes = self._library.hone_kernel_packed_bytes()

    def close(self):
        _ctypes.dlclose(self._library._handle)

    def run(self, addresses, packed, workspace):
        return self._library.hone_kernel_run(
            _pointers(addresses), ctypes.c_void_p(packed), ctypes.c_void_p(workspace))

    def prepack(self, addresses, packed):
        return self._library.hone_kernel_prepack(_pointers(addresses), ctypes.c_void_p(packed))


def _pointers(addresses):
    return (ctypes.c_void_p * len(addresses))(*addresses)


class Fault(Exception):
    """The kernel violated its interface."""


class Call:
    """The buffers for calls of a kernel."""

    def __init__(self, kernel, inputs, output_sizes, place, poison):
        self._kernel, self._poison = kernel, poison
        self._inputs = inputs
        self._buffers = {f"input {n}": Buffer(array.nbytes, place)
                         for n, array in enumerate(inputs)}
        self._outputs = [Buffer(size, place) for size in output_sizes]
        self._buffers.update({f"output {n}": b for n, b in enumerate(self._outputs)})
        self._packed = Buffer(kernel.packed_bytes, place)
        self._workspace = Buffer(kernel.workspace_bytes, place)
        for n, array in enumerate(inputs):
            self._buffers[f"input {n}"].fill(array)
        self._addresses = [buffer.address for buffer in self._buffers.values()]
        self._buffers.update({"the packed constants": self._packed,
                              "the workspace": self._workspace})
        self._packed.fill(poison)
        if kernel.packed_bytes > 0:
            self._returns("prepack", kernel.prepack(self._addresses, self._packed.address), OK)
            self._check_surroundings("prepack")
        self._packed_bytes = self._packed.data.copy()

    def run(self):
        """Poisons outputs and workspace, runs, checks the canaries, returns the outputs' bytes."""
        for buffer in (*self._outputs, self._workspace):
            buffer.fill(self._poison)
        code = self._kernel.run(self._addresses, self._packed.address, self._workspace.address)
        self._returns("run", code, OK)
        self._check_surroundings("run")
        return [buffer.data.copy() for buffer in self._outputs]

    def run_misaligned(self):
        """A misaligned or null pointer must be rejected, and nothing may be written."""
        for buffer in self._outputs:
            buffer.fill(self._poison)
        for wrong in (self._addresses[-1] + 4, None):
            addresses = [*self._addresses[:-1], wrong]
            code = self._kernel.run(addresses, self._packed.address, self._workspace.address)
            self._returns("run with a misaligned output", code, MISALIGNED_BUFFER)
        if any((buffer.data != self._poison).any() for buffer in self._outputs):
            raise Fault("a run that refused a misaligned output wrote to an output")

    def _returns(self, what, code, expected):
        if code == UNSUPPORTED_CPU and expected == OK:
            raise UnsupportedCpu()
        if code != expected:
            raise Fault(f"{what} returned {code}, not {expected}")

    def _check_surroundings(self, what):
        for name, buffer in self._buffers.items():
            if buffer.overrun():
                raise Fault(f"{what} wrote outside {name}: {buffer.overrun()}")
        for n, array in enumerate(self._inputs):
            before = array.reshape(-1).view(np.uint8)
            if not np.array_equal(self._buffers[f"input {n}"].data, before):
                raise Fault(f"{what} changed input {n}")
        if what == "run" and not np.array_equal(self._packed.data, self._packed_bytes):
            raise Fault("run changed the packed constants")


class UnsupportedCpu(Exception):
    """This CPU lacks a feature that the kernel uses."""
