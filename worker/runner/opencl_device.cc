#include "worker/runner/opencl_device.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/target/gpu_module.h"
#include "common/target/opencl/detect.h"
#include "worker/runner/artifact_file.h"
#include "worker/runner/opencl_buffer.h"
#include "worker/runner/opencl_context.h"
#include "worker/runner/opencl_kernel.h"
#include "worker/runner/opencl_probe.h"

namespace hone::runner {
namespace {

constexpr int64_t kLeastFlushBytes = 16 << 20;

class OpenClDevice final : public Device {
 public:
  explicit OpenClDevice(std::unique_ptr<OpenClContext> context) : context_(std::move(context)) {}

  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(int64_t bytes,
                                                         uint64_t placement) override {
    return OpenClBuffer::Create(*context_, bytes, placement);
  }

  absl::StatusOr<std::unique_ptr<DeviceKernel>> Load(const std::string& artifact_path,
                                                     uint64_t placement) override {
    HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, ReadArtifact(artifact_path));
    if (!record::HoldsGpuModule(artifact)) {
      return absl::InvalidArgumentError("the artifact is for a CPU, but this device is of OpenCL");
    }
    HONE_ASSIGN_OR_RETURN(const target::GpuModule module,
                          target::GpuModule::Decode(artifact.shared_object));
    return OpenClKernel::Load(*context_, module, placement, [this] {
      return flush_ == nullptr ? absl::OkStatus() : flush_->Poison();
    });
  }

  // The device uses all of its compute units, whatever the number of threads.
  absl::Status PrepareTiming(int, bool flushed) override {
    if (!flushed || flush_ != nullptr) return absl::OkStatus();
    const int64_t bytes = std::min(std::max(2 * context_->cache_bytes, kLeastFlushBytes),
                                   context_->max_allocation_bytes / 2);
    HONE_ASSIGN_OR_RETURN(flush_, OpenClBuffer::Create(*context_, bytes, 0));
    return absl::OkStatus();
  }

  int concurrency() const override { return context_->units; }

  absl::StatusOr<std::unique_ptr<Probe>> MakeProbe(double peak_gflops) override {
    return MakeOpenClProbe(*context_, peak_gflops);
  }

  bool lost() const override { return context_->lost(); }

 private:
  std::unique_ptr<OpenClContext> context_;
  std::unique_ptr<OpenClBuffer> flush_;  // written to empty the caches
};

absl::StatusOr<std::unique_ptr<OpenClContext>> Open(absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const opencl::Api* const api, opencl::LoadedApi());
  HONE_ASSIGN_OR_RETURN(const opencl::DeviceFacts facts, opencl::FindDevice(*api, name));
  return OpenClContext::Create(*api, facts);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> MakeOpenClDevice(absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<OpenClContext> context, Open(name));
  return std::make_unique<OpenClDevice>(std::move(context));
}

absl::StatusOr<Peak> MeasureOpenClPeak(absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<OpenClContext> context, Open(name));
  return MeasureOpenClPeak(*context);
}

}  // namespace hone::runner
