#include "worker/runner/gpu_device.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/target/gpu_module.h"
#include "common/target/open_gpu.h"
#include "worker/runner/artifact_file.h"
#include "worker/runner/gpu_buffer.h"
#include "worker/runner/gpu_kernel.h"
#include "worker/runner/gpu_probe.h"
#include "worker/runner/math_errors.h"

namespace hone::runner {
namespace {

constexpr int64_t kLeastFlushBytes = 16 << 20;

class GpuDevice final : public Device {
 public:
  explicit GpuDevice(std::unique_ptr<target::GpuContext> context) : context_(std::move(context)) {}

  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(int64_t bytes,
                                                         uint64_t placement) override {
    return GpuBuffer::Create(*context_, bytes, placement);
  }

  absl::StatusOr<std::unique_ptr<DeviceKernel>> Load(const std::string& artifact_path,
                                                     uint64_t placement) override {
    HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, ReadArtifact(artifact_path));
    if (!record::HoldsGpuModule(artifact)) {
      return absl::InvalidArgumentError("the artifact is for a CPU, but this device is a GPU");
    }
    HONE_ASSIGN_OR_RETURN(const target::GpuModule module,
                          target::GpuModule::Decode(artifact.shared_object));
    return GpuKernel::Load(*context_, module, placement, [this] {
      return flush_ == nullptr ? absl::OkStatus() : flush_->Poison();
    });
  }

  // A GPU always uses all of its compute units, so the number of threads is ignored.
  absl::Status PrepareTiming(int, bool flushed) override {
    if (!flushed || flush_ != nullptr) return absl::OkStatus();
    const int64_t bytes = std::min(std::max(2 * context_->cache_bytes, kLeastFlushBytes),
                                   context_->max_allocation_bytes / 2);
    HONE_ASSIGN_OR_RETURN(flush_, GpuBuffer::Create(*context_, bytes, 0));
    return absl::OkStatus();
  }

  int concurrency() const override { return context_->units; }

  absl::StatusOr<std::unique_ptr<Probe>> MakeProbe(double peak_gflops) override {
    return MakeGpuProbe(*context_, peak_gflops);
  }

  void Observe(record::MachineState& state) override {
    const target::GpuConditions now = context_->Observe();
    if (now.clock_mhz > 0) state.frequency_mhz = now.clock_mhz;
    if (now.temperature_c > 0) state.temperature_c = now.temperature_c;
  }
  ir::ErrorOfOp error_of() const override { return ErrorsOf(context_->kind()); }
  std::string own_lock() const override {
    if (context_->uses_host) return "";
    return context_->bus_address.empty() ? "gpu" : context_->bus_address;
  }
  bool lost() const override { return context_->lost(); }

 private:
  std::unique_ptr<target::GpuContext> context_;
  std::unique_ptr<GpuBuffer> flush_;  // written to empty the caches
};

}  // namespace

std::unique_ptr<Device> MakeGpuDevice(std::unique_ptr<target::GpuContext> context) {
  return std::make_unique<GpuDevice>(std::move(context));
}

absl::StatusOr<std::unique_ptr<Device>> MakeGpuDevice(absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<target::GpuContext> context, target::OpenGpu(name));
  return MakeGpuDevice(std::move(context));
}

absl::StatusOr<Peak> MeasureGpuPeak(absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<target::GpuContext> context, target::OpenGpu(name));
  return MeasureGpuPeak(*context);
}

}  // namespace hone::runner
