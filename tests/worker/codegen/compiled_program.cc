#include "tests/worker/codegen/compiled_program.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/element_bytes.h"
#include "common/lower/lower.h"
#include "common/target/kernel_abi.h"
#include "common/target/openmp_runtime.h"
#include "worker/builder/link.h"
#include "worker/codegen/backend.h"
#include "worker/runner/elements.h"

namespace hone::codegen {
namespace {

constexpr int64_t kGuardBytes = 4096;
constexpr unsigned char kGuard = 0xa5;

// Aligned memory with guard bytes on both sides.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) : bytes_(bytes) {
    const int64_t total = (bytes + 2 * kGuardBytes + 4095) / 4096 * 4096;
    memory_ = static_cast<unsigned char*>(std::aligned_alloc(4096, total));
    std::memset(memory_, kGuard, total);
  }
  Guarded(Guarded&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
  ~Guarded() { std::free(memory_); }
  unsigned char* data() { return memory_ + kGuardBytes; }
  bool Intact() const {
    for (int64_t i = 0; i < kGuardBytes; ++i) {
      if (memory_[i] != kGuard || memory_[kGuardBytes + bytes_ + i] != kGuard) return false;
    }
    return true;
  }

 private:
  unsigned char* memory_;
  int64_t bytes_;
};

std::vector<ir::Scalars> ToScalars(absl::Span<const ir::Values> tensors) {
  std::vector<ir::Scalars> scalars;
  for (const ir::Values& values : tensors) scalars.emplace_back(values.begin(), values.end());
  return scalars;
}

absl::StatusOr<std::vector<ir::Values>> ToValues(absl::StatusOr<std::vector<ir::Scalars>> tensors) {
  HONE_RETURN_IF_ERROR(tensors.status());
  std::vector<ir::Values> all;
  for (const ir::Scalars& scalars : *tensors) {
    ir::Values& values = all.emplace_back();
    for (const ir::Scalar scalar : scalars) values.push_back(scalar.real());
  }
  return all;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledProgram>> CompiledProgram::Load(
    const ir::Program& program, const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(program, target));
  HONE_ASSIGN_OR_RETURN(const Code code, Generate(lowered, target));
  HONE_ASSIGN_OR_RETURN(const std::string shared, builder::LinkSharedObject(code.bytes, {}));
  return Load(program.shared_workload(), shared);
}

absl::StatusOr<std::unique_ptr<CompiledProgram>> CompiledProgram::Load(
    std::shared_ptr<const ir::Workload> workload, absl::string_view shared) {
  if (!target::LoadOpenMp()) return absl::InternalError("libgomp.so.1 cannot be loaded");
  const int fd = memfd_create("kernel", MFD_CLOEXEC);
  if (fd < 0 || write(fd, shared.data(), shared.size()) != static_cast<ssize_t>(shared.size())) {
    return absl::InternalError("cannot write the shared object to memory");
  }
  auto compiled = std::unique_ptr<CompiledProgram>(new CompiledProgram);
  compiled->workload_ = std::move(workload);
  compiled->handle_ = dlopen(absl::StrCat("/proc/self/fd/", fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  close(fd);
  if (compiled->handle_ == nullptr) return absl::InternalError(absl::StrCat("dlopen: ", dlerror()));
  return compiled;
}

CompiledProgram::~CompiledProgram() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* CompiledProgram::Symbol(const char* name) const { return dlsym(handle_, name); }

int64_t CompiledProgram::range_extent() const {
  return reinterpret_cast<target::SizeFunction>(Symbol(target::kRangeExtentSymbol))();
}
int32_t CompiledProgram::threads() const {
  return reinterpret_cast<target::ThreadsFunction>(Symbol(target::kThreadsSymbol))();
}

int64_t CompiledProgram::workspace_bytes() const {
  return reinterpret_cast<target::WorkspaceFunction>(Symbol(target::kWorkspaceSymbol))(threads());
}

absl::StatusOr<std::vector<ir::Values>> CompiledProgram::Run(absl::Span<const ir::Values> inputs) {
  return ToValues(RunWith(ToScalars(inputs), -1, -1));
}
absl::StatusOr<std::vector<ir::Scalars>> CompiledProgram::Run(
    absl::Span<const ir::Scalars> inputs) {
  return RunWith(inputs, -1, -1);
}
absl::StatusOr<std::vector<ir::Values>> CompiledProgram::RunRange(
    absl::Span<const ir::Values> inputs, int64_t begin, int64_t end) {
  return ToValues(RunWith(ToScalars(inputs), begin, end));
}

absl::StatusOr<std::vector<ir::Scalars>> CompiledProgram::RunWith(
    absl::Span<const ir::Scalars> inputs, int64_t begin, int64_t end) {
  std::vector<Guarded> memory;
  std::vector<void*> buffers;
  const std::vector<ir::BufferId> input_ids = workload_->Inputs(),
                                  output_ids = workload_->Outputs();
  for (size_t t = 0; t < input_ids.size(); ++t) {
    const ir::Tensor& tensor = workload_->tensors[input_ids[t]];
    memory.emplace_back(tensor.bytes());
    for (size_t e = 0; e < inputs[t].size(); ++e) {
      ir::WriteElement(tensor.dtype, memory.back().data(), e, inputs[t][e]);
    }
  }
  for (ir::BufferId id : output_ids) {
    const ir::Tensor& tensor = workload_->tensors[id];
    memory.emplace_back(tensor.bytes());
    for (int64_t e = 0; e < ir::ElementsOf(tensor.shape); ++e) {
      ir::WriteElement(tensor.dtype, memory.back().data(), e,
                       ir::IsFloat(tensor.dtype) ? ir::Scalar(NAN) : ir::Scalar(77));
    }
  }
  const int64_t packed_bytes =
      reinterpret_cast<target::SizeFunction>(Symbol(target::kPackedSymbol))();
  memory.emplace_back(packed_bytes);
  memory.emplace_back(workspace_bytes());
  for (Guarded& buffer : memory) buffers.push_back(buffer.data());
  void* const workspace = buffers.back();
  void* const packed = buffers[buffers.size() - 2];
  const int32_t prepacked = reinterpret_cast<target::PrepackFunction>(
      Symbol(target::kPrepackSymbol))(buffers.data(), packed);
  int32_t code = 0;
  if (begin < 0) {
    const HoneRuntime runtime = target::OpenMpRuntime(threads());
    code = reinterpret_cast<target::RunFunction>(Symbol(target::kRunSymbol))(buffers.data(), packed,
                                                                             workspace, &runtime);
  } else {
    code = reinterpret_cast<target::RangeFunction>(Symbol(target::kRangeSymbol))(
        buffers.data(), packed, workspace, begin, end, /*thread=*/0);
  }
  if (prepacked != 0 || code != 0)
    return absl::InternalError(absl::StrCat("return codes ", prepacked, " and ", code));
  for (size_t b = 0; b < memory.size(); ++b) {
    if (!memory[b].Intact())
      return absl::InternalError(absl::StrCat("bytes outside buffer ", b, " were written"));
  }
  std::vector<ir::Scalars> outputs;
  for (size_t t = 0; t < output_ids.size(); ++t) {
    const ir::Tensor& tensor = workload_->tensors[output_ids[t]];
    ir::Scalars& values = outputs.emplace_back(ir::ElementsOf(tensor.shape));
    const void* const data = memory[input_ids.size() + t].data();
    for (size_t e = 0; e < values.size(); ++e) {
      values[e] = ir::ReadElement(tensor.dtype, data, static_cast<int64_t>(e));
    }
  }
  return outputs;
}

}  // namespace hone::codegen
