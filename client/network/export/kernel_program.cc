// The example program and the Python module of kernel_header.h.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/network/export/c_text.h"
#include "client/network/export/kernel_header.h"

namespace hone::client {
namespace {

constexpr char kExample[] =
    R"(/* Calls the kernel @NAME@ once with made-up inputs, then some times more, and prints the shortest time.
 *
 *   cc -O2 @NAME@_example.c @NAME@.o hone_threads.c -pthread -o @NAME@_example
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "@NAME@.h"

/* Memory for at least this many bytes, aligned as kernels need it, and zero. */
static void* Allocate(int64_t bytes) {
  const size_t size = ((size_t)bytes + @PREFIX@_ALIGNMENT) / @PREFIX@_ALIGNMENT * @PREFIX@_ALIGNMENT;
  void* const memory = aligned_alloc(@PREFIX@_ALIGNMENT, size);
  if (memory == NULL) {
    fprintf(stderr, "not enough memory\n");
    exit(1);
  }
  return memset(memory, 0, size);
}

static double Microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int main(void) {
  void* buffers[@PREFIX@_BUFFERS];
@FILL@  void* const packed = @NAME@_packed_bytes() > 0 ? Allocate(@NAME@_packed_bytes()) : NULL;
  const HoneRuntime runtime = hone_threads(0); /* or your own threads */
  const int64_t bytes = @NAME@_workspace_bytes(runtime.threads);
  void* const workspace = bytes > 0 ? Allocate(bytes) : NULL;
  if (packed != NULL && @NAME@_prepack(buffers, packed) != HONE_KERNEL_OK) {
    fprintf(stderr, "@NAME@_prepack failed\n");
    return 1;
  }
  double least = 0;
  for (int run = 0; run < 20; ++run) {
    const double begin = Microseconds();
    const int32_t status = @NAME@_run(buffers, packed, workspace, &runtime);
    const double time = Microseconds() - begin;
    if (status == HONE_KERNEL_UNSUPPORTED_CPU) {
      fprintf(stderr, "the kernel needs another CPU\n");
      return 1;
    }
    if (status != HONE_KERNEL_OK) {
      fprintf(stderr, "@NAME@_run returned %d\n", (int)status);
      return 1;
    }
    if (run == 0 || time < least) least = time;
  }
  printf("@NAME@: %.1f us with %d threads\n", least, (int)runtime.threads);
  for (int i = 0; i < @PREFIX@_BUFFERS; ++i) free(buffers[i]);
  free(packed);
  free(workspace);
  return 0;
}
)";

constexpr char kModule[] = R"("""A kernel that Hone has exported. It computes

@WORKLOAD@

    from @NAME@_kernel import Kernel

    kernel = Kernel(@CONSTANTS@)
    @RESULT@ = kernel(@INPUTS@)

Arguments are NumPy arrays, or what NumPy makes arrays of. Types that NumPy does not have are their bits: bf16 as uint16, 8-bit
floats as uint8, and 4-bit integers as uint8 with two elements in a byte, in one dimension. A Kernel is for one thread at a time.
"""

import ctypes
import os

import numpy

_ALIGNMENT = 64
_TYPES = {
    "f16": numpy.float16, "f32": numpy.float32, "f64": numpy.float64, "i8": numpy.int8, "u8": numpy.uint8, "i32": numpy.int32,
    "i64": numpy.int64, "bool": numpy.bool_, "bf16": numpy.uint16, "f8e4m3": numpy.uint8, "f8e5m2": numpy.uint8,
    "i4": numpy.uint8, "u4": numpy.uint8,
}
_STATUS = {1: "the CPU lacks a feature that the kernel uses", 2: "a buffer is not aligned", 3: "buffers overlap"}


class Tensor:
    """The name, type and shape of an input or output."""

    def __init__(self, name, dtype, shape, size, output=False, constant=False, read=True):
        self.name, self.dtype, self.bytes = name, dtype, size
        self.shape = (size,) if dtype in ("i4", "u4") else tuple(shape)
        self.output, self.constant, self.read = output, constant, read

    def __repr__(self):
        return f"{self.name}: {self.dtype}{list(self.shape)}"


TENSORS = [
@TENSORS@]


class Error(RuntimeError):
    """The kernel cannot be called."""


class _Runtime(ctypes.Structure):
    _fields_ = [("parallel_for", ctypes.c_void_p), ("threads", ctypes.c_int32)]


def _empty(size):
    """Aligned bytes."""
    memory = numpy.empty(size + _ALIGNMENT, numpy.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    return memory[begin:begin + size]


def _aligned(tensor, value, copies=False):
    """The value as an aligned array that the kernel can read, copied only where needed or if `copies`."""
    array = numpy.asarray(value)
    if array.dtype != _TYPES[tensor.dtype] or array.shape != tensor.shape:
        raise Error(f"{tensor.name} is {array.dtype}{list(array.shape)}, expected "
                    f"{numpy.dtype(_TYPES[tensor.dtype])}{list(tensor.shape)}")
    if not copies and array.flags.c_contiguous and array.ctypes.data % _ALIGNMENT == 0:
        return array
    copy = _empty(tensor.bytes).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _load():
    library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib@NAME@.so"))
    pointer = ctypes.c_void_p
    for name, result, arguments in [
            ("packed_bytes", ctypes.c_int64, []),
            ("workspace_bytes", ctypes.c_int64, [ctypes.c_int32]),
            ("prepack", ctypes.c_int32, [pointer, pointer]),
            ("run", ctypes.c_int32, [pointer, pointer, pointer, ctypes.POINTER(_Runtime)]),
            ("pool", _Runtime, [ctypes.c_int32])]:
        function = getattr(library, "@NAME@_" + name)
        function.restype, function.argtypes = result, arguments
    return library


class Kernel:
    """The kernel with its constants, which are given by name, or in a dictionary: Kernel({"W": w}). `threads` 0: as many as
    OMP_NUM_THREADS says, or else as there are CPUs that this process may use."""

    def __init__(self, constants=None, /, *, threads=0, **named):
        constants = {**(constants or {}), **named}
        self._library = _load()
        self._runtime = self._library.@NAME@_pool(threads)
        self._constants = {}
        for tensor in TENSORS:
            if not tensor.constant:
                continue
            if tensor.name not in constants:
                raise Error(f"the constant {tensor} is missing")
            self._constants[tensor.name] = _aligned(tensor, constants.pop(tensor.name), copies=True)
        if constants:
            raise Error(f"there is no constant {', '.join(constants)}")
        self._packed = None
        size = self._library.@NAME@_packed_bytes()
        if size > 0:
            self._packed = _empty(size)
            # Outputs are not used here, but their pointers must be aligned.
            buffers = self._buffers({t.name: self._constants.get(t.name, self._packed) for t in TENSORS})
            self._check(self._library.@NAME@_prepack(buffers, self._packed.ctypes.data))
            for tensor in TENSORS:
                if tensor.constant and not tensor.read:
                    self._constants[tensor.name] = None  # only its packed form is read
        self._workspace = _empty(max(1, self._library.@NAME@_workspace_bytes(self._runtime.threads)))

    def __call__(self, *inputs):
        """Returns the output, or a tuple of the outputs."""
        names = [tensor.name for tensor in TENSORS if not tensor.output and not tensor.constant]
        if len(inputs) != len(names):
            raise Error(f"{len(inputs)} inputs are given, expected {', '.join(names)}")
        values = dict(self._constants)
        for tensor in TENSORS:
            if tensor.name in names:
                values[tensor.name] = _aligned(tensor, inputs[names.index(tensor.name)])
            elif tensor.output:
                values[tensor.name] = _empty(tensor.bytes).view(_TYPES[tensor.dtype]).reshape(tensor.shape)
        packed = None if self._packed is None else self._packed.ctypes.data
        self._check(self._library.@NAME@_run(self._buffers(values), packed, self._workspace.ctypes.data,
                                             ctypes.byref(self._runtime)))
        outputs = tuple(values[tensor.name] for tensor in TENSORS if tensor.output)
        return outputs[0] if len(outputs) == 1 else outputs

    @staticmethod
    def _buffers(values):
        arrays = [values[tensor.name] for tensor in TENSORS]
        return (ctypes.c_void_p * len(arrays))(*[None if array is None else array.ctypes.data for array in arrays])

    @staticmethod
    def _check(status):
        if status != 0:
            raise Error(_STATUS.get(status, f"the kernel returned {status}"))
)";

// Statements that allocate and fill the buffers.
std::string Fill(const ir::Workload& workload, const std::string& prefix) {
  std::string text;
  const std::vector<ir::BufferId> buffers = BuffersOf(workload);
  const std::vector<std::string> names = BufferPrefixes(prefix, workload);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const ir::Tensor& tensor = workload.tensors[buffers[i]];
    absl::StrAppend(&text, "  buffers[", names[i], "_INDEX] = Allocate(", names[i], "_BYTES);\n");
    if (!tensor.input) continue;
    std::string value;
    switch (tensor.dtype) {
      case ir::DType::kF32:
      case ir::DType::kF64:
        value = "(i % 7 - 3) / 4.0";
        break;
      case ir::DType::kI8:
      case ir::DType::kU8:
      case ir::DType::kI32:
      case ir::DType::kI64:
        value = absl::StrCat("i % ", tensor.bound > 0 ? std::min<int64_t>(tensor.bound, 7) : 7);
        break;
      case ir::DType::kBool:
        value = "i % 2";
        break;
      default:
        continue;  // zeros: C has no such type
    }
    absl::StrAppend(&text, "  for (int64_t i = 0; i < ", names[i], "_ELEMENTS; ++i)\n    ((",
                    names[i], "_TYPE*)buffers[", names[i], "_INDEX])[i] = (", names[i], "_TYPE)(",
                    value, ");\n");
  }
  return text;
}

// Whether Python, or the parameter `threads`, has taken this name.
bool IsReservedInPython(absl::string_view name) {
  static constexpr absl::string_view kReserved[] = {
      "False", "None",     "True",  "and",    "as",      "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif",    "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",      "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "threads", "try",    "while",  "with",     "yield"};
  return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}
// Returns a variable for a tensor.
std::string PythonVariable(const std::string& name) {
  return absl::StrCat(name, IsReservedInPython(name) ? "_" : "");
}

std::string Quoted(const std::string& name) { return absl::StrCat("\"", name, "\""); }

}  // namespace

std::string KernelExample(const ir::Workload& workload, const KernelFacts& facts) {
  const std::string prefix = MacroPrefix(CIdentifier(facts.name));
  return absl::StrReplaceAll(kExample, {{"@NAME@", CIdentifier(facts.name)},
                                        {"@PREFIX@", prefix},
                                        {"@FILL@", Fill(workload, prefix)}});
}

std::string KernelModule(const ir::Workload& workload, const KernelFacts& facts) {
  std::string tensors;
  std::vector<std::string> inputs, named, in_dictionary, outputs;
  bool is_reserved = false;
  const std::vector<ir::BufferId> buffers = BuffersOf(workload);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const ir::Tensor& tensor = workload.tensors[buffers[i]];
    const bool unread = facts.accepts_null && i < facts.reads.size() && !facts.reads[i];
    absl::StrAppend(&tensors, "    Tensor(", Quoted(tensor.name), ", ",
                    Quoted(std::string(ir::DTypeName(tensor.dtype))), ", [",
                    absl::StrJoin(tensor.shape, ", "), "], ", tensor.bytes(),
                    tensor.input ? "" : ", output=True", tensor.constant ? ", constant=True" : "",
                    unread ? ", read=False" : "", "),\n");
    if (!tensor.input) {
      outputs.push_back(PythonVariable(tensor.name));
    } else if (tensor.constant) {
      in_dictionary.push_back(absl::StrCat(Quoted(tensor.name), ": ", PythonVariable(tensor.name)));
      named.push_back(absl::StrCat(tensor.name, "=", tensor.name));
      is_reserved |= IsReservedInPython(tensor.name);
    } else {
      inputs.push_back(PythonVariable(tensor.name));
    }
  }
  const std::string constants = is_reserved
                                    ? absl::StrCat("{", absl::StrJoin(in_dictionary, ", "), "}")
                                    : absl::StrJoin(named, ", ");
  // A backslash or quotation marks would end the text of the module; names have none.
  std::vector<std::string> lines = absl::StrSplit(workload.ToText(), '\n', absl::SkipEmpty());
  for (std::string& line : lines) line.insert(0, "    ");
  return absl::StrReplaceAll(kModule, {{"@NAME@", CIdentifier(facts.name)},
                                       {"@WORKLOAD@", absl::StrJoin(lines, "\n")},
                                       {"@CONSTANTS@", constants},
                                       {"@INPUTS@", absl::StrJoin(inputs, ", ")},
                                       {"@RESULT@", absl::StrJoin(outputs, ", ")},
                                       {"@TENSORS@", tensors}});
}

}  // namespace hone::client
