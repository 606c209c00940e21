"""Kernels that violate their interface must be detected."""
import ctypes
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import kernel
from compare import compare
from number import Number

_SOURCE = """
#include <stdint.h>
static int calls;
int32_t hone_kernel_abi(void) { return 2; }
int64_t hone_kernel_workspace_bytes(int32_t threads) { return 64; }
int64_t hone_kernel_packed_bytes(void) { return 64; }
int64_t hone_kernel_range_extent(void) { return 0; }
int32_t hone_kernel_prepack(void* const* buffers, void* packed) { return *(float*)packed = 1, 0; }
int32_t hone_kernel_run(void* const* buffers, void* packed, void* workspace, const void* runtime) {
  if (!buffers[1] || (uintptr_t)buffers[1] % 64) return CHECKED;
  if (buffers[0] == buffers[1]) return 3;
  float* x = buffers[0];
  float* y = buffers[1];
  ++calls;
  for (int i = 0; i < 16; ++i) y[i] = x[i] + 1;
  BREAK;
  return 0;
}
"""


class KernelTest(unittest.TestCase):
    def _call(self, fault, place="odd", checked="2"):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source = Path(folder.name) / "kernel.c"
        source.write_text(_SOURCE.replace("BREAK", fault).replace("CHECKED", checked))
        path = source.with_suffix(".so")
        subprocess.run(["cc", "-shared", "-fPIC", "-w", source, "-o", path], check=True)
        self._kernel = kernel.Kernel(str(path))
        return kernel.Call(self._kernel, [np.arange(16, dtype=np.float32)], [64],
                           place, 0xFF)

    def test_a_good_kernel_passes_at_every_place(self):
        for place in ("odd", "begin", "end"):
            call = self._call("", place)
            (data,) = call.run()
            self.assertEqual(data.view(np.float32).tolist(), list(range(1, 17)))
            call.run_wrong()

    def test_a_closed_kernel_leaves_no_mappings(self):
        def mappings():
            return Path("/proc/self/maps").read_text().count("/kernel.so")

        self._call("").run()
        self.assertGreater(mappings(), 0)
        self._kernel.close()
        self.assertEqual(mappings(), 0)

    def test_what_breaks_the_interface_is_found(self):
        for fault, message in (("y[16] = 0", "4 bytes behind"), ("y[-1] = 0", "4 bytes before"),
                               ("x[3] = 0", "changed input 0"),
                               ("((char*)workspace)[64] = 1", "outside the workspace"),
                               ("*(float*)packed = 2", "changed the packed constants"),
                               ("return 7", "returned 7")):
            with self.assertRaisesRegex(kernel.Fault, message):
                self._call(fault).run()
        with self.assertRaisesRegex(kernel.Fault, "returned 0"):
            self._call("", checked="0").run_wrong()

    def test_runtimes_run_every_part_once(self):
        for backwards in (False, True):
            for chunk in (0, 1, 3, 50):
                runtime = kernel.Runtime(3, backwards)
                seen = []
                body = kernel._Body(lambda _, begin, end, thread: seen.append((begin, end, thread)))
                runtime.parallel_for(None, 7, chunk, 3, ctypes.cast(body, ctypes.c_void_p), None)
                done = sorted(i for begin, end, _ in seen for i in range(begin, end))
                self.assertEqual(done, list(range(7)))
                self.assertTrue(all(0 <= thread < 3 for *_, thread in seen))

    def test_an_element_that_is_not_written_is_poison(self):
        (data,) = self._call("((uint32_t*)y)[5] = 0xffffffff").run()
        expected = Number("f32", np.arange(1.0, 17.0), np.full(16, 1e-6))
        comparison = compare("Y", data.view(np.float32), expected)
        self.assertRegex(comparison.message, r"Y\[5\] is nan, expected 6.0 .* 1 of 16")

    def test_an_error_beyond_the_bound_is_found(self):
        expected = Number("f32", np.ones(4), np.full(4, 1e-6))
        got = np.array([1, 1, 1, 1.00001], np.float32)
        self.assertRegex(compare("Y", got, expected).message, r"Y\[3\]")
        self.assertEqual(compare("Y", got[:3], expected[:3]).message, "")


if __name__ == "__main__":
    unittest.main()
