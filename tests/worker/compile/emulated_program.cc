#include "tests/worker/compile/emulated_program.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"
#include "common/target/kernel_abi.h"

namespace hone::codegen {
namespace {

// Global memory between bytes that nobody may write.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(int64_t bytes)
      : bytes_(bytes),
        memory_(static_cast<unsigned char*>(
            std::aligned_alloc(kGuard, 2 * kGuard + (bytes + kGuard - 1) / kGuard * kGuard))) {
    std::fill(memory_.get(), memory_.get() + 2 * kGuard + bytes, 0xff);
  }
  void* data() const { return memory_.get() + kGuard; }
  bool Intact() const {
    const auto is_guard = [](unsigned char c) { return c == 0xff; };
    const unsigned char* const end = memory_.get() + kGuard + bytes_;
    return std::all_of(memory_.get(), memory_.get() + kGuard, is_guard) &&
           std::all_of(end, end + kGuard, is_guard);
  }

 private:
  static constexpr int64_t kGuard = 256;
  struct Free {
    void operator()(unsigned char* memory) const { std::free(memory); }
  };

  int64_t bytes_;
  std::unique_ptr<unsigned char, Free> memory_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<EmulatedPrograms>> EmulatedPrograms::Build(std::vector<Code> codes) {
  std::vector<std::string> texts;
  for (const Code& code : codes) texts.push_back(code.bytes);
  HONE_ASSIGN_OR_RETURN(const std::string module, cuda::BuildEmulatedModules(texts));
  auto programs = std::make_unique<EmulatedPrograms>();
  HONE_ASSIGN_OR_RETURN(programs->module_, cuda::EmulatedModule::Load(module));
  programs->codes_ = std::move(codes);
  return programs;
}

absl::StatusOr<std::vector<ir::Scalars>> EmulatedPrograms::Run(size_t number,
                                                               const ir::Workload& workload,
                                                               absl::Span<const ir::Scalars> inputs,
                                                               cuda::EmulatedOrder order,
                                                               uint64_t seed) {
  const target::GpuModule& module = *codes_[number].module;
  std::vector<ir::BufferId> tensors = workload.Inputs();
  const std::vector<ir::BufferId> outputs = workload.Outputs();
  tensors.insert(tensors.end(), outputs.begin(), outputs.end());
  std::vector<DeviceBuffer> buffers;
  std::vector<void*> pointers;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const ir::Tensor& tensor = workload.tensors[tensors[t]];
    const int64_t elements = ir::ElementsOf(tensor.shape);
    DeviceBuffer& buffer = buffers.emplace_back(tensor.bytes());
    for (int64_t e = 0; t < inputs.size() && e < elements; ++e) {
      ir::WriteElement(tensor.dtype, buffer.data(), e, inputs[t][e]);
    }
  }
  buffers.emplace_back(module.packed_bytes);
  buffers.emplace_back(module.workspace_bytes);
  for (const DeviceBuffer& buffer : buffers) pointers.push_back(buffer.data());
  std::vector<void*> parameters;
  for (void*& pointer : pointers) parameters.push_back(&pointer);
  for (const target::GpuLaunch& launch : module.launches) {
    HONE_RETURN_IF_ERROR(module_->Launch(absl::StrCat(number, ":", launch.kernel),
                                         {.grid = launch.grid,
                                          .block = launch.block,
                                          .dynamic_shared_bytes = launch.shared_bytes,
                                          .order = order,
                                          .seed = seed},
                                         parameters.data()));
  }
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (!buffers[b].Intact()) {
      return absl::InternalError(absl::StrCat("bytes around parameter ", b, " were written"));
    }
  }
  std::vector<ir::Scalars> results;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const ir::Tensor& tensor = workload.tensors[outputs[o]];
    ir::Scalars& values = results.emplace_back();
    for (int64_t e = 0; e < ir::ElementsOf(tensor.shape); ++e) {
      values.push_back(ir::ReadElement(
          tensor.dtype, static_cast<unsigned char*>(buffers[inputs.size() + o].data()), e));
    }
  }
  return results;
}

}  // namespace hone::codegen
