#include "tests/worker/compile/compiled_program.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_abi.h"
#include "common/target/thread_pool.h"
#include "tests/worker/compile/placed_tensor.h"
#include "tests/worker/emulated/emulator.h"
#include "worker/builder/link.h"
#include "worker/compile/backend.h"
#include "worker/compile/lower/layout.h"
#include "worker/compile/lower/lower.h"
#include "worker/runner/inputs.h"

namespace hone::codegen {
namespace {

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
  HONE_ASSIGN_OR_RETURN(std::string shared,
                        builder::LinkSharedObject(code.bytes, {.triple = target.triple}));
  static const std::string* const own_arch = new std::string(target::DetectHost().arch);
  if (target.arch == *own_arch) return Load(program.shared_workload(), shared);
  auto compiled = std::unique_ptr<CompiledProgram>(new CompiledProgram);
  HONE_ASSIGN_OR_RETURN(compiled->emulator_, Emulator::For(target));
  compiled->workload_ = program.shared_workload();
  compiled->shared_ = std::move(shared);
  compiled->strides_ = strides;
  compiled->threads_ = lowered.threads;
  return compiled;
}

absl::StatusOr<std::unique_ptr<CompiledProgram>> CompiledProgram::Load(
    std::shared_ptr<const ir::Workload> workload, absl::string_view shared) {
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

ir::Shape CompiledProgram::StridesOf(int32_t position) const {
  if (emulator_ != nullptr) return strides_.empty() ? ir::Shape() : strides_[position];
  const auto strides = reinterpret_cast<target::StridesFunction>(Symbol(target::kStridesSymbol));
  const int64_t* const own = strides == nullptr ? nullptr : strides(position);
  if (own == nullptr) return {};
  std::vector<ir::BufferId> ids = workload_->Inputs();
  for (const ir::BufferId id : workload_->Outputs()) ids.push_back(id);
  return ir::Shape(own, own + workload_->tensors[ids[position]].shape.size());
}

absl::Status CompiledProgram::Call(absl::Span<PlacedTensor> tensors, int64_t begin, int64_t end) {
  std::vector<void*> buffers;
  for (PlacedTensor& tensor : tensors) buffers.push_back(tensor.data());
  const int64_t packed_bytes =
      reinterpret_cast<target::SizeFunction>(Symbol(target::kPackedSymbol))();
  Guarded packed_memory(packed_bytes), workspace_memory(workspace_bytes());
  void* const workspace = workspace_memory.data();
  void* const packed = packed_memory.data();
  const int32_t prepacked = reinterpret_cast<target::PrepackFunction>(
      Symbol(target::kPrepackSymbol))(buffers.data(), packed);
  int32_t code = 0;
#ifdef __x86_64__
  constexpr unsigned kDenormalOperand = 1 << 1, kUnderflow = 1 << 4;
  _mm_setcsr(_mm_getcsr() & ~(kDenormalOperand | kUnderflow));
#endif
  if (begin < 0) {
    const HoneRuntime runtime = hone_threads(threads());
    code = reinterpret_cast<target::RunFunction>(Symbol(target::kRunSymbol))(buffers.data(), packed,
                                                                             workspace, &runtime);
  } else {
    code = reinterpret_cast<target::RangeFunction>(Symbol(target::kRangeSymbol))(
        buffers.data(), packed, workspace, begin, end, /*thread=*/0);
  }
#ifdef __x86_64__
  underflowed_ = (_mm_getcsr() & (kDenormalOperand | kUnderflow)) != 0;
#endif
  if (prepacked != 0 || code != 0)
    return absl::InternalError(absl::StrCat("return codes ", prepacked, " and ", code));
  if (!packed_memory.Intact() || !workspace_memory.Intact())
    return absl::InternalError("bytes outside the kernel's own memory were written");
  return absl::OkStatus();
}

absl::Status CompiledProgram::CallEmulated(absl::Span<PlacedTensor> tensors) {
  std::vector<EmulatedBuffer> buffers;
  for (PlacedTensor& tensor : tensors) {
    buffers.push_back(
        {tensor.offset(), std::string(static_cast<const char*>(tensor.data()), tensor.bytes())});
  }
  HONE_RETURN_IF_ERROR(emulator_->Run(shared_, threads_, absl::MakeSpan(buffers)));
  for (size_t t = 0; t < tensors.size(); ++t)
    std::memcpy(tensors[t].data(), buffers[t].bytes.data(), buffers[t].bytes.size());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ir::Scalars>> CompiledProgram::RunWith(
    absl::Span<const ir::Scalars> inputs, int64_t begin, int64_t end) {
  std::vector<PlacedTensor> tensors;
  const auto place = [&](ir::BufferId id) -> PlacedTensor& {
    return tensors.emplace_back(workload_->tensors[id],
                                StridesOf(static_cast<int32_t>(tensors.size())));
  };
  const std::vector<ir::BufferId> input_ids = workload_->Inputs(),
                                  output_ids = workload_->Outputs();
  for (size_t t = 0; t < input_ids.size(); ++t) {
    PlacedTensor& tensor = place(input_ids[t]);
    for (size_t e = 0; e < inputs[t].size(); ++e)
      tensor.Write(static_cast<int64_t>(e), inputs[t][e]);
  }
  for (ir::BufferId id : output_ids) {
    const ir::Tensor& output = workload_->tensors[id];
    PlacedTensor& tensor = place(id);
    const ir::Scalar poison = ir::IsFloat(output.dtype) ? ir::Scalar(NAN) : ir::Scalar(77);
    for (int64_t e = 0; e < ir::ElementsOf(output.shape); ++e) tensor.Write(e, poison);
  }
  HONE_RETURN_IF_ERROR(emulator_ == nullptr ? Call(absl::MakeSpan(tensors), begin, end)
                                            : CallEmulated(absl::MakeSpan(tensors)));
  for (size_t b = 0; b < tensors.size(); ++b) {
    if (!tensors[b].Intact())
      return absl::InternalError(absl::StrCat("bytes outside buffer ", b, " were written"));
  }
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
