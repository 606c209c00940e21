#ifndef HONE_TESTS_WORKER_COMPILE_COMPILED_PROGRAM_H_
#define HONE_TESTS_WORKER_COMPILE_COMPILED_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/interpreter.h"
#include "common/ir/program.h"
#include "common/target/target.h"
#include "worker/compile/lower/layout.h"

namespace hone::codegen {

class Emulator;
class PlacedTensor;

// A program that is lowered, compiled, linked and loaded into this process, or, if it is for
// another architecture, into an emulated one. It runs on the interpreter's values. Guard bytes
// around every buffer, and between the rows of slices, are checked after each run.
class CompiledProgram {
 public:
  static absl::StatusOr<std::unique_ptr<CompiledProgram>> Load(
      const ir::Program& program, const target::Target& target,
      const lower::ArgumentStrides& strides = {});
  // The same for a shared object that was made before.
  static absl::StatusOr<std::unique_ptr<CompiledProgram>> Load(
      std::shared_ptr<const ir::Workload> workload, absl::string_view shared_object);
  ~CompiledProgram();

  // Fills outputs with NaN (integers: with a pattern) before the run. Internal: the kernel returned
  // an error code or wrote outside a buffer.
  absl::StatusOr<std::vector<ir::Values>> Run(absl::Span<const ir::Values> inputs);
  absl::StatusOr<std::vector<ir::Scalars>> Run(absl::Span<const ir::Scalars> inputs);
  // What follows is for programs in this process. RunRange runs only hone_kernel_range over [begin,
  // end), after prepacking.
  absl::StatusOr<std::vector<ir::Values>> RunRange(absl::Span<const ir::Values> inputs,
                                                   int64_t begin, int64_t end);
  int64_t range_extent() const;
  // The kernel's largest number of threads, with which it runs, and its workspace then.
  int32_t threads() const;
  int64_t workspace_bytes() const;
  void* Symbol(const char* name) const;
  // Whether the last run, on this thread of an x86 CPU, had a denormal operand, or a result that
  // underflowed to a denormal or 0. Both take some CPUs hundreds of cycles.
  bool underflowed() const { return underflowed_; }

 private:
  CompiledProgram() = default;
  absl::StatusOr<std::vector<ir::Scalars>> RunWith(absl::Span<const ir::Scalars> inputs,
                                                   int64_t begin, int64_t end);
  // The strides of an argument; empty if it is dense.
  ir::Shape StridesOf(int32_t position) const;
  absl::Status Call(absl::Span<PlacedTensor> tensors, int64_t begin, int64_t end);
  absl::Status CallEmulated(absl::Span<PlacedTensor> tensors);

  std::shared_ptr<const ir::Workload> workload_;
  // Open as long as the program is loaded: the loader takes a file of the same name for the same
  // one.
  int file_ = -1;
  void* handle_ = nullptr;
  // Of a program for another architecture.
  Emulator* emulator_ = nullptr;
  std::string shared_;
  lower::ArgumentStrides strides_;
  int32_t threads_ = 1;
  bool underflowed_ = false;
};

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_COMPILE_COMPILED_PROGRAM_H_
