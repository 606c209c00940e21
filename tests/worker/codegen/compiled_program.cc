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
#include "common/lower/layout.h"
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

// Memory with guard bytes on both sides, and in what is not written yet. It begins `offset` bytes
// after an aligned address.
class Guarded {
 public:
  explicit Guarded(int64_t bytes, int64_t offset = 0)
      : begin_(kGuardBytes + offset), bytes_(bytes) {
    const int64_t total = (begin_ + bytes + kGuardBytes + 4095) / 4096 * 4096;
    memory_ = static_cast<unsigned char*>(std::aligned_alloc(4096, total));
    std::memset(memory_, kGuard, total);
  }
  Guarded(Guarded&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)),
        begin_(other.begin_),
        bytes_(other.bytes_) {}
  ~Guarded() { std::free(memory_); }
  unsigned char* data() { return memory_ + begin_; }
  bool Intact() const {
    for (int64_t i = 0; i < kGuardBytes; ++i) {
      if (memory_[begin_ - 1 - i] != kGuard || memory_[begin_ + bytes_ + i] != kGuard) return false;
    }
    return true;
  }

 private:
  unsigned char* memory_;
  int64_t begin_, bytes_;
};

// A tensor in memory, dense or a slice. A slice has only the alignment of its elements.
class Placed {
 public:
  Placed(const ir::Tensor& tensor, const int64_t* strides)
      : tensor_(tensor),
        strides_(strides == nullptr ? ir::Shape()
                                    : ir::Shape(strides, strides + tensor.shape.size())),
        span_(strides_.empty() ? ir::ElementsOf(tensor.shape)
                               : lower::SpanOf(tensor.shape, strides_)),
        memory_(span_ * ir::DTypeBytes(tensor.dtype),
                strides_.empty() ? 0 : ir::DTypeBytes(tensor.dtype)) {}

  void Write(int64_t element, ir::Scalar value) {
    ir::WriteElement(tensor_.dtype, memory_.data(), Offset(element), value);
  }
  ir::Scalar Read(int64_t element) {
    return ir::ReadElement(tensor_.dtype, memory_.data(), Offset(element));
  }
  void* data() { return memory_.data(); }

  // Whether nothing outside of the tensor was written: around it, or between the rows of a slice.
  bool Intact() {
    const int64_t bytes = ir::DTypeBytes(tensor_.dtype);
    std::vector<bool> element(span_);
    for (int64_t e = 0; e < ir::ElementsOf(tensor_.shape); ++e) element[Offset(e)] = true;
    for (int64_t at = 0; at < span_; ++at) {
      for (int64_t b = 0; !element[at] && b < bytes; ++b) {
        if (memory_.data()[at * bytes + b] != kGuard) return false;
      }
    }
    return memory_.Intact();
  }

 private:
  int64_t Offset(int64_t element) const {
    return lower::OffsetOf(tensor_.shape, strides_, element);
  }

  const ir::Tensor& tensor_;
  ir::Shape strides_;
  int64_t span_;
  Guarded memory_;
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
    const ir::Program& program, const target::Target& target,
    const lower::ArgumentStrides& strides) {
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered,
                        lower::Lower(program, target, strides));
  HONE_ASSIGN_OR_RETURN(const Code code, Generate(lowered, target));
  HONE_ASSIGN_OR_RETURN(const std::string shared, builder::LinkSharedObject(code.bytes, {}));
  return Load(program.shared_workload(), shared);
}

absl::StatusOr<std::unique_ptr<CompiledProgram>> CompiledProgram::Load(
    std::shared_ptr<const ir::Workload> workload, absl::string_view shared) {
  if (!target::LoadOpenMp()) return absl::InternalError("libgomp.so.1 cannot be loaded");
  auto compiled = std::unique_ptr<CompiledProgram>(new CompiledProgram);
  const int fd = compiled->file_ = memfd_create("kernel", MFD_CLOEXEC);
  if (fd < 0 || write(fd, shared.data(), shared.size()) != static_cast<ssize_t>(shared.size())) {
    return absl::InternalError("cannot write the shared object to memory");
  }
  compiled->workload_ = std::move(workload);
  compiled->handle_ = dlopen(absl::StrCat("/proc/self/fd/", fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (compiled->handle_ == nullptr) return absl::InternalError(absl::StrCat("dlopen: ", dlerror()));
  return compiled;
}

CompiledProgram::~CompiledProgram() {
  if (handle_ != nullptr) dlclose(handle_);
  if (file_ >= 0) close(file_);
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
  std::vector<Placed> tensors;
  std::vector<void*> buffers;
  const auto strides = reinterpret_cast<target::StridesFunction>(Symbol(target::kStridesSymbol));
  const auto place = [&](ir::BufferId id) -> Placed& {
    const auto position = static_cast<int32_t>(tensors.size());
    return tensors.emplace_back(workload_->tensors[id],
                                strides == nullptr ? nullptr : strides(position));
  };
  const std::vector<ir::BufferId> input_ids = workload_->Inputs(),
                                  output_ids = workload_->Outputs();
  for (size_t t = 0; t < input_ids.size(); ++t) {
    Placed& tensor = place(input_ids[t]);
    for (size_t e = 0; e < inputs[t].size(); ++e)
      tensor.Write(static_cast<int64_t>(e), inputs[t][e]);
  }
  for (ir::BufferId id : output_ids) {
    const ir::Tensor& output = workload_->tensors[id];
    Placed& tensor = place(id);
    const ir::Scalar poison = ir::IsFloat(output.dtype) ? ir::Scalar(NAN) : ir::Scalar(77);
    for (int64_t e = 0; e < ir::ElementsOf(output.shape); ++e) tensor.Write(e, poison);
  }
  const int64_t packed_bytes =
      reinterpret_cast<target::SizeFunction>(Symbol(target::kPackedSymbol))();
  Guarded packed_memory(packed_bytes), workspace_memory(workspace_bytes());
  for (Placed& tensor : tensors) buffers.push_back(tensor.data());
  void* const workspace = workspace_memory.data();
  void* const packed = packed_memory.data();
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
  for (size_t b = 0; b < tensors.size(); ++b) {
    if (!tensors[b].Intact())
      return absl::InternalError(absl::StrCat("bytes outside buffer ", b, " were written"));
  }
  if (!packed_memory.Intact() || !workspace_memory.Intact())
    return absl::InternalError("bytes outside the kernel's own memory were written");
  std::vector<ir::Scalars> outputs;
  for (size_t t = 0; t < output_ids.size(); ++t) {
    ir::Scalars& values =
        outputs.emplace_back(ir::ElementsOf(workload_->tensors[output_ids[t]].shape));
    for (size_t e = 0; e < values.size(); ++e)
      values[e] = tensors[input_ids.size() + t].Read(static_cast<int64_t>(e));
  }
  return outputs;
}

}  // namespace hone::codegen
