#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/target/host.h"
#include "common/target/target.h"
#include "common/target/thread_pool.h"
#include "worker/runner/device.h"
#include "worker/runner/kernel.h"
#include "worker/runner/limits.h"
#include "worker/runner/peak.h"
#include "worker/runner/tensor_memory.h"

namespace hone::runner {
namespace {

absl::Status KernelError(int32_t code) {
  switch (code) {
    case target::kKernelOk:
      return absl::OkStatus();
    case target::kKernelUnsupportedCpu:
      return absl::InvalidArgumentError(
          "this CPU lacks a feature that the kernel was built for, or Linux refuses its tile "
          "registers (AMX)");
    case target::kKernelMisalignedBuffer:
      return absl::InvalidArgumentError("the kernel reports a misaligned buffer");
    case target::kKernelOverlap:
      return absl::InvalidArgumentError("the kernel reports buffers that overlap");
    default:
      return absl::InvalidArgumentError(absl::StrCat("the kernel returns ", code));
  }
}

// Refuses unreasonable amounts of memory that a kernel requests in addition to its buffers.
absl::Status CheckSize(absl::string_view what, int64_t bytes) {
  const int64_t limit = std::max<int64_t>(target::DescribeHost().memory_bytes / 2, 64 << 20);
  if (bytes < 0 || bytes > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the kernel needs ", bytes, " bytes of ", what, "; at most ", limit));
  }
  return absl::OkStatus();
}

class CpuBuffer final : public DeviceBuffer {
 public:
  explicit CpuBuffer(std::unique_ptr<TensorMemory> memory) : memory_(std::move(memory)) {}

  int64_t bytes() const override { return static_cast<int64_t>(memory_->bytes()); }
  absl::Status Write(absl::FunctionRef<void(void*)> fill) override {
    fill(memory_->data());
    return absl::OkStatus();
  }
  absl::StatusOr<const void*> Read() override { return memory_->data(); }
  absl::Status Poison() override {
    memory_->Poison();
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<int64_t>> WrittenOutside() override {
    return memory_->WrittenOutside();
  }
  void* data() const { return memory_->data(); }

 private:
  std::unique_ptr<TensorMemory> memory_;
};

// What the kernels of a device share.
struct Shared {
  HoneRuntime runtime;
  std::unique_ptr<TensorMemory> workspace;  // with the capacity of the largest so far
  std::unique_ptr<TensorMemory> flush;      // read to empty the caches
};

class CpuKernel final : public DeviceKernel {
 public:
  CpuKernel(std::unique_ptr<Kernel> kernel, std::unique_ptr<TensorMemory> packed, Shared& shared)
      : kernel_(std::move(kernel)), packed_(std::move(packed)), shared_(shared) {}

  int64_t parts() const override { return library().range_extent(); }

  absl::Status Prepack(DeviceBuffers buffers) override {
    if (library().packed_bytes() == 0) return absl::OkStatus();
    return KernelError(library().Prepack(Pointers(buffers).data(), packed_->data()));
  }

  absl::Status PoisonWorkspace() override {
    shared_.workspace->Poison();
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> WrittenOutside() override {
    const struct {
      const char* name;
      TensorMemory& memory;
    } own[] = {{"its workspace", *shared_.workspace}, {"its packed constants", *packed_}};
    for (const auto& each : own) {
      const std::optional<int64_t> outside = each.memory.WrittenOutside();
      if (!outside) continue;
      return DescribeWriteOutside(each.name, *outside, static_cast<int64_t>(each.memory.bytes()));
    }
    return std::string();
  }

  absl::StatusOr<double> Run(DeviceBuffers buffers, int64_t count, bool flushed) override {
    const std::vector<void*> pointers = Pointers(buffers);
    void* const packed = packed_->data();
    void* const workspace = shared_.workspace->data();
    const HoneRuntime runtime = shared_.runtime;
    int32_t code = target::kKernelOk;
    double total = 0;
    // Threads that have slept are woken first. In a program that calls the kernel again and again,
    // they wait actively.
    if (flushed) {
      for (int64_t i = 0; i < count; ++i) {
        RunStream(shared_.flush->data(), shared_.flush->bytes());
        RunOnEachThread(runtime, [](int64_t) {});
        const double begin = NowNs();
        code |= library().Run(pointers.data(), packed, workspace, &runtime);
        total += NowNs() - begin;
      }
    } else {
      RunOnEachThread(runtime, [](int64_t) {});
      const double begin = NowNs();
      for (int64_t i = 0; i < count; ++i) {
        code |= library().Run(pointers.data(), packed, workspace, &runtime);
      }
      total = NowNs() - begin;
    }
    HONE_RETURN_IF_ERROR(KernelError(code));
    return total;
  }

  absl::StatusOr<double> RunPart(DeviceBuffers buffers, int64_t begin, int64_t end) override {
    const std::vector<void*> pointers = Pointers(buffers);
    const double start = NowNs();
    const int32_t code = library().Range(pointers.data(), packed_->data(),
                                         shared_.workspace->data(), begin, end, /*thread=*/0);
    const double elapsed = NowNs() - start;
    HONE_RETURN_IF_ERROR(KernelError(code));
    return elapsed;
  }

 private:
  static std::vector<void*> Pointers(DeviceBuffers buffers) {
    std::vector<void*> pointers;
    for (const DeviceBuffer* const buffer : buffers) {
      pointers.push_back(static_cast<const CpuBuffer*>(buffer)->data());
    }
    return pointers;
  }

  const target::KernelLibrary& library() const { return kernel_->library(); }

  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<TensorMemory> packed_;
  Shared& shared_;
};

class CpuDevice final : public Device {
 public:
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(int64_t bytes,
                                                         uint64_t placement) override {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<TensorMemory> memory,
                          TensorMemory::Create(bytes, placement));
    return std::make_unique<CpuBuffer>(std::move(memory));
  }

  absl::StatusOr<std::unique_ptr<DeviceKernel>> Load(const std::string& artifact_path,
                                                     uint64_t placement) override {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, LoadKernel(artifact_path));
    const int64_t packed_bytes = kernel->library().packed_bytes();
    const int64_t workspace_bytes = kernel->library().WorkspaceBytes(KernelThreads());
    HONE_RETURN_IF_ERROR(CheckSize("workspace", workspace_bytes));
    HONE_RETURN_IF_ERROR(CheckSize("packed constants", packed_bytes));
    Rng offsets(placement);
    std::unique_ptr<TensorMemory>& workspace = shared_.workspace;
    const uint64_t offset = offsets();
    if (workspace == nullptr || static_cast<int64_t>(workspace->capacity()) < workspace_bytes) {
      workspace = nullptr;
      HONE_ASSIGN_OR_RETURN(workspace, TensorMemory::Create(workspace_bytes, offset));
    }
    workspace->Resize(static_cast<size_t>(workspace_bytes));
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<TensorMemory> packed,
                          TensorMemory::Create(packed_bytes, offsets()));
    return std::make_unique<CpuKernel>(std::move(kernel), std::move(packed), shared_);
  }

  absl::Status PrepareTiming(int threads, bool flushed) override {
    const int cores = KernelThreads();
    shared_.runtime = hone_threads(threads > 0 ? std::min(threads, cores) : cores);
    if (!flushed || shared_.flush != nullptr) return absl::OkStatus();
    const target::Target host = target::DetectHost();
    const int64_t caches = host.l2_bytes * cores + target::ReachableL3Bytes(host);
    const int64_t bytes = std::max<int64_t>(2 * caches, 16 << 20);
    HONE_ASSIGN_OR_RETURN(shared_.flush, TensorMemory::Create(bytes / 4096 * 4096, 0));
    return absl::OkStatus();
  }

  int concurrency() const override { return shared_.runtime.threads; }

  absl::StatusOr<std::unique_ptr<Probe>> MakeProbe(double peak_gflops) override {
    return CreateProbe(peak_gflops, shared_.runtime);
  }

 private:
  Shared shared_{.runtime = hone_threads(KernelThreads())};
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice() { return std::make_unique<CpuDevice>(); }

}  // namespace hone::runner
