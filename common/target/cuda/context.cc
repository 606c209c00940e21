#include "common/target/cuda/context.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/cuda/detect.h"
#include "common/target/cuda/error.h"
#include "common/target/cuda/program.h"

namespace hone::cuda {
namespace {

// CUDA aligns allocations to this number of bytes.
constexpr int64_t kAlignment = 256;

}  // namespace

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Create(const Api& api,
                                                                 const DeviceFacts& facts) {
  auto made = std::unique_ptr<CudaContext>(new CudaContext(api));
  HONE_RETURN_IF_ERROR(ToStatus(api.CtxCreate(&made->context_, 0, facts.device),
                                absl::StrCat("make a CUDA context of ", facts.name)));
  size_t memory = 0;
  HONE_RETURN_IF_ERROR(ToStatus(api.DeviceTotalMem(&memory, facts.device),
                                absl::StrCat("ask for the memory of ", facts.name)));
  const auto ask = [&](int attribute, int otherwise) {
    return AttributeOr(api, facts.device, static_cast<DeviceAttribute>(attribute), otherwise);
  };
  made->uses_host = ask(kIntegrated, 0) != 0;
  made->bus_address = facts.pci;
  made->units = facts.target.cores;
  made->max_allocation_bytes =
      static_cast<int64_t>(std::min(memory, static_cast<size_t>(int64_t{1} << 60)));
  made->cache_bytes = facts.target.l2_bytes;
  made->shared_bytes = facts.target.gpu.shared_bytes;
  made->max_threads = facts.target.gpu.max_threads;
  for (int d = 0; d < 3; ++d) {
    made->max_block[d] = ask(kMaxBlockDimX + d, d == 2 ? 64 : 1024);
    made->max_grid[d] = ask(kMaxGridDimX + d, 65535);
  }
  made->buffer_alignment = kAlignment;
  absl::StatusOr<std::unique_ptr<NvmlDevice>> nvml = NvmlDevice::Open(facts.pci);
  if (nvml.ok()) made->nvml_ = *std::move(nvml);
  return made;
}

CudaContext::~CudaContext() {
  if (context_ != nullptr && !lost_) api_.CtxDestroy(context_);
}

absl::Status CudaContext::Check(Result code, absl::string_view what) {
  const absl::Status status = ToStatus(code, what);
  if (absl::IsAborted(status) || absl::IsUnavailable(status)) lost_ = true;
  return status;
}

absl::StatusOr<std::unique_ptr<target::GpuMemory>> CudaContext::Allocate(int64_t bytes,
                                                                         int64_t data_at,
                                                                         int64_t data_bytes) {
  DevicePointer pointer = 0;
  HONE_RETURN_IF_ERROR(
      Check(api().MemAlloc(&pointer, static_cast<size_t>(bytes)),
            absl::StrCat("no memory on the device for a buffer of ", data_bytes, " bytes")));
  return std::make_unique<CudaMemory>(*this, pointer, data_at);
}

absl::StatusOr<std::unique_ptr<target::GpuProgram>> CudaContext::Load(
    const target::GpuModule& module, absl::string_view what) {
  return CudaProgram::Create(*this, module, what);
}

target::GpuConditions CudaContext::Observe() {
  if (nvml_ == nullptr) return {};
  const NvmlState now = nvml_->Look();
  return {now.clock_mhz, now.temperature_c};
}

}  // namespace hone::cuda
