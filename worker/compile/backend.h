#ifndef HONE_WORKER_COMPILE_BACKEND_H_
#define HONE_WORKER_COMPILE_BACKEND_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/target/gpu_module.h"
#include "common/target/target.h"
#include "worker/compile/lower/lowered.h"

// Turns lowered programs into code. There is one back end per kind of code.
namespace hone::codegen {

// Raised whenever the code of a program changes, or the threads that run it (version 15: those of
// thread_pool.h). Stored records contain the version they were measured with.
inline constexpr int kCodegenVersion = 19;

// Formats of code. A toolchain (worker/builder/toolchain.h) makes an artifact of each.
inline constexpr char kElfObject[] = "elf object";  // with the symbols of target/kernel_abi.h
inline constexpr char kOpenClSource[] = "opencl source";
inline constexpr char kCudaSource[] = "cuda source";  // CUDA C++ that includes no files

struct Code {
  std::string format;
  std::string bytes;   // an object file, or the source text of a module's kernels
  std::string source;  // assembly or source text, if it was asked for
  // For GPUs: how to launch the kernels. The toolchain fills in the module's code.
  std::optional<target::GpuModule> module;
};

struct CodeOptions {
  bool keep_source = false;  // may generate the code a second time
};

// A generator of code. Stateless: calls from several threads are independent. The interpreter of
// tests/oracles defines what the code computes; tests/worker/compile/backend_conformance_test.cc
// checks it.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual absl::string_view name() const = 0;
  // Returns whether it generates code for this target.
  virtual bool Serves(const target::Target& target) const = 0;
  // REQUIRES Serves(target). InvalidArgument: the code would exceed a limit, or the target is
  // inconsistent. Unimplemented: the program has an operation, loop or instruction without code on
  // this target. Internal: a bug of the back end.
  virtual absl::StatusOr<Code> Generate(const lower::LoweredProgram& program,
                                        const target::Target& target,
                                        const CodeOptions& options) const = 0;
};

// Machine code for CPUs, generated with LLVM.
const Backend* LlvmBackend();
// OpenCL C for OpenCL targets. The driver of the device compiles it.
const Backend* OpenClBackend();
// CUDA C++ for NVIDIA GPUs, which a builder compiles with NVRTC. The text includes no files.
const Backend* CudaBackend();

// Returns all back ends. A new one is added in registry.cc.
absl::Span<const Backend* const> Backends();

// Generates code with the first back end that serves the target. Errors as in Backend::Generate;
// Unimplemented: none does.
absl::StatusOr<Code> Generate(const lower::LoweredProgram& program, const target::Target& target,
                              const CodeOptions& options = {});

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_BACKEND_H_
