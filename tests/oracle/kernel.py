"""Calls a kernel through its C interface (common/target/kernel_abi.h), and checks the memory around
its buffers."""
import _ctypes
import ctypes
import mmap
import threading

import numpy as np

ALIGNMENT = 64
OK, UNSUPPORTED_CPU, MISALIGNED_BUFFER, OVERLAP = 0, 1, 2, 3
_PAGE = mmap.PAGESIZE
_CANARY = 256  # bytes on each side that has no protected page
_CANARY_BYTE = 0xC5

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


_Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_ParallelFor = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)


class Runtime(ctypes.Structure):
    """The threads of a kernel: parts on threads of their own, or one part after the other, the last
    one first."""
    _fields_ = [("parallel_for", _ParallelFor), ("threads", ctypes.c_int32)]

    def __init__(self, threads, backwards=False):
        def parallel_for(_, extent, chunk, used, body, context):
            body = _Body(body)
            if chunk == 0:
                parts = [[(extent * t // used, extent * (t + 1) // used)] for t in range(used)]
            else:
                all_parts = [(b, min(b + chunk, extent)) for b in range(0, extent, chunk)]
                parts = [all_parts[t::used] for t in range(used)]

            def work(thread):
                for begin, end in (parts[thread][::-1] if backwards else parts[thread]):
                    body(context, begin, end, thread)

            if backwards:
                for thread in reversed(range(used)):
                    work(thread)
                return
            others = [threading.Thread(target=work, args=(t,)) for t in range(1, used)]
            for other in others:
                other.start()
            work(0)
            for other in others:
                other.join()

        super().__init__(_ParallelFor(parallel_for), threads)


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
        for name in ("workspace_bytes", "packed_bytes"):
            getattr(self._library, "hone_kernel_" + name).restype = ctypes.c_int64
        self.abi = self._library.hone_kernel_abi()
        self.packed_bytes = self._library.hone_kernel_packed_bytes()

    def close(self):
        _ctypes.dlclose(self._library._handle)

    def workspace_bytes(self, threads):
        return self._library.hone_kernel_workspace_bytes(ctypes.c_int32(threads))

    def uses(self, buffer):
        """Whether a run reads or writes the buffer, rather than only its packed form."""
        if not hasattr(self._library, "hone_kernel_uses"):  # then a run uses all or none
            return self.packed_bytes == 0
        return self._library.hone_kernel_uses(ctypes.c_int32(buffer)) != 0

    def run(self, addresses, packed, workspace, runtime=None):
        return self._library.hone_kernel_run(
            _pointers(addresses), ctypes.c_void_p(packed), ctypes.c_void_p(workspace),
            None if runtime is None else ctypes.byref(runtime))

    def prepack(self, addresses, packed):
        return self._library.hone_kernel_prepack(_pointers(addresses), ctypes.c_void_p(packed))


def _pointers(addresses):
    return (ctypes.c_void_p * len(addresses))(*addresses)


class Fault(Exception):
    """The kernel violated its interface."""


class Call:
    """The buffers for calls of a kernel."""

    def __init__(self, kernel, inputs, output_sizes, place, poison, runtime=None):
        self._kernel, self._poison, self._runtime = kernel, poison, runtime
        self._inputs = inputs
        self._buffers = {f"input {n}": Buffer(array.nbytes, place)
                         for n, array in enumerate(inputs)}
        self._outputs = [Buffer(size, place) for size in output_sizes]
        self._buffers.update({f"output {n}": b for n, b in enumerate(self._outputs)})
        self._packed = Buffer(kernel.packed_bytes, place)
        threads = 1 if runtime is None else runtime.threads
        self._workspace = Buffer(kernel.workspace_bytes(threads), place)
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
        code = self._kernel.run(self._addresses, self._packed.address, self._workspace.address,
                                self._runtime)
        self._returns("run", code, OK)
        self._check_surroundings("run")
        return [buffer.data.copy() for buffer in self._outputs]

    def run_wrong(self):
        """A misaligned or null pointer and an output that is also an input must be rejected, and
        nothing may be written."""
        for buffer in self._outputs:
            buffer.fill(self._poison)
        for wrong in (self._addresses[-1] + 4, None):
            addresses = [*self._addresses[:-1], wrong]
            code = self._kernel.run(addresses, self._packed.address, self._workspace.address)
            self._returns("run with a misaligned output", code, MISALIGNED_BUFFER)
        used = [n for n in range(len(self._inputs)) if self._kernel.uses(n)]
        if used:
            addresses = [*self._addresses[:-1], self._addresses[used[0]]]
            code = self._kernel.run(addresses, self._packed.address, self._workspace.address)
            self._returns("run with an output that is an input", code, OVERLAP)
        if any((buffer.data != self._poison).any() for buffer in self._outputs):
            raise Fault("a run that refused its outputs wrote to an output")

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
