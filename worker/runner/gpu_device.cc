#include "worker/runner/gpu_device.h"

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/ir/expr.h"
#include "common/target/cuda/api.h"
#include "common/target/cuda/detect.h"
#include "common/target/cuda/nvml.h"
#include "common/target/gpu_context.h"
#include "common/target/gpu_module.h"
#include "common/target/host.h"
#include "common/target/open_gpu.h"
#include "common/target/opencl/api.h"
#include "common/target/opencl/detect.h"
#include "common/target/target.h"
#include "worker/runner/gpu_probe.h"
#include "worker/runner/kernel.h"
#include "worker/runner/tensor_memory.h"

namespace hone::runner {
namespace {

constexpr int64_t kPlacementPage = 4096;
constexpr unsigned char kPoison = 0xff;

std::unique_ptr<char[]> HostMemory(int64_t bytes) {
  return std::unique_ptr<char[]>(new (std::nothrow) char[static_cast<size_t>(bytes)]);
}

absl::Status NoHostMemory(int64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory on the host for a copy of ", bytes, " bytes"));
}

using target::GpuLaunch;
using target::GpuModule;

absl::StatusOr<std::unique_ptr<GpuBuffer>> AllocateFor(target::GpuContext& context,
                                                       absl::string_view what, int64_t bytes,
                                                       uint64_t placement) {
  if (bytes == 0) return nullptr;
  auto buffer = GpuBuffer::Create(context, bytes, placement);
  if (buffer.ok()) return buffer;
  return absl::Status(buffer.status().code(), absl::StrCat("the kernel needs ", bytes, " bytes of ",
                                                           what, ": ", buffer.status().message()));
}

using ir::Op;

// In units in the last place, of which one is two unit roundoffs. The larger of f32 and f64.
struct MathErrors {
  Op op;
  double opencl;  // OpenCL 1.2, section 7.4, full profile
  // CUDA C++ programming guide, mathematical functions, plus the half unit of the correctly rounded
  // result with which it compares.
  double cuda;
};
constexpr MathErrors kMathErrors[] = {
    {Op::kDiv, 2.5, 0.5},
    {Op::kExp, 3, 2.5},
    {Op::kLog, 3, 1.5},
    {Op::kSqrt, 3, 0.5},
    {Op::kRsqrt, 2, 2.5},
    {Op::kTanh, 5, 2.5},
    {Op::kErf, 16, 2.5},
    {Op::kPow, 16, 8.5},
    // Functions of worker/compile/c/c_prelude.cc: a quotient of exponentials, and erfc with a
    // correction.
    {Op::kSigmoid, 7.5, 5},
    {Op::kNormalCdf, 17, 7},
};

template <double MathErrors::* kColumn>
double RoundoffsOf(Op op) {
  for (const MathErrors& errors : kMathErrors) {
    if (errors.op == op) return 2 * errors.*kColumn;
  }
  return 1;
}

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

absl::Status AddOpenCl(target::DeviceList& list) {
  HONE_ASSIGN_OR_RETURN(const opencl::Api* const api, opencl::LoadedApi());
  HONE_ASSIGN_OR_RETURN(const std::vector<opencl::DeviceFacts> devices, opencl::ListDevices(*api));
  for (size_t i = 0; i < devices.size(); ++i) {
    const opencl::DeviceFacts& device = devices[i];
    list.devices.push_back(
        {.device = absl::StrCat("opencl:", i),
         .name = device.name,
         .driver = absl::StrCat(device.platform_name, ", driver ", device.driver_version),
         .target = device.target});
  }
  return absl::OkStatus();
}

absl::Status AddCuda(target::DeviceList& list) {
  HONE_ASSIGN_OR_RETURN(const cuda::Api* const api, cuda::LoadedApi());
  HONE_ASSIGN_OR_RETURN(const std::vector<cuda::DeviceFacts> devices, cuda::ListDevices(*api));
  for (size_t i = 0; i < devices.size(); ++i) {
    const cuda::DeviceFacts& device = devices[i];
    const auto nvml = cuda::NvmlDevice::Open(device.pci);
    list.devices.push_back({.device = absl::StrCat("cuda:", i),
                            .name = device.name,
                            .driver = absl::StrCat("NVIDIA, driver of CUDA ", device.driver),
                            .target = device.target,
                            .problem = device.problem,
                            .warning = nvml.ok() ? (*nvml)->Look().Warning() : ""});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuBuffer>> GpuBuffer::Create(target::GpuContext& context,
                                                             int64_t bytes, uint64_t placement) {
  const int64_t alignment = context.buffer_alignment;
  const auto wanted = kCanaryBytes + static_cast<int64_t>(placement % kPlacementPage);
  const int64_t offset = (wanted + alignment - 1) / alignment * alignment;
  const int64_t most = context.max_allocation_bytes - offset - kCanaryBytes;
  if (bytes <= 0 || bytes > most) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a buffer of ", bytes, " bytes; the device allows 1 to ", most, " in one buffer"));
  }
  const int64_t size = offset + bytes + kCanaryBytes;
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<target::GpuMemory> memory,
                        context.Allocate(size, offset, bytes));
  // A device that is out of memory may say so only at the first use.
  if (const absl::Status filled = memory->Fill(0, size, kCanary); !filled.ok()) {
    if (context.lost()) return filled;
    return absl::ResourceExhaustedError(absl::StrCat("no memory on the device for a buffer of ",
                                                     bytes, " bytes: ", filled.message()));
  }
  return std::unique_ptr<GpuBuffer>(new GpuBuffer(std::move(memory), bytes, offset));
}

absl::Status GpuBuffer::Write(absl::FunctionRef<void(void*)> fill) {
  host_ = nullptr;
  const std::unique_ptr<char[]> content = HostMemory(bytes_);
  if (content == nullptr) return NoHostMemory(bytes_);
  fill(content.get());
  return memory_->Write(offset_, bytes_, content.get());
}

absl::StatusOr<const void*> GpuBuffer::Read() {
  if (host_ == nullptr) host_ = HostMemory(bytes_);
  if (host_ == nullptr) return NoHostMemory(bytes_);
  HONE_RETURN_IF_ERROR(memory_->Read(offset_, bytes_, host_.get()));
  return host_.get();
}

absl::Status GpuBuffer::Poison() {
  host_ = nullptr;
  return memory_->Fill(offset_, bytes_, kPoison);
}

absl::StatusOr<std::optional<int64_t>> GpuBuffer::WrittenOutside() {
  std::array<unsigned char, kCanaryBytes> before, after;
  HONE_RETURN_IF_ERROR(memory_->Read(offset_ - kCanaryBytes, kCanaryBytes, before.data()));
  HONE_RETURN_IF_ERROR(memory_->Read(offset_ + bytes_, kCanaryBytes, after.data()));
  const std::optional<int64_t> found =
      FindWriteOutside(before.data() + kCanaryBytes, after.data(), bytes_);
  if (found) {
    HONE_RETURN_IF_ERROR(memory_->Fill(offset_ - kCanaryBytes, kCanaryBytes, kCanary));
    HONE_RETURN_IF_ERROR(memory_->Fill(offset_ + bytes_, kCanaryBytes, kCanary));
  }
  return found;
}

GpuKernel::GpuKernel(const GpuModule& module, std::unique_ptr<target::GpuProgram> program,
                     std::function<absl::Status()> flush_caches)
    : arguments_(static_cast<size_t>(module.arguments)),
      program_(std::move(program)),
      flush_caches_(std::move(flush_caches)) {
  for (size_t i = 0; i < module.launches.size(); ++i) {
    (module.launches[i].prepack ? prepack_ : run_).push_back(i);
  }
}

absl::StatusOr<std::unique_ptr<GpuKernel>> GpuKernel::Load(
    target::GpuContext& context, const GpuModule& module, uint64_t placement,
    std::function<absl::Status()> flush_caches) {
  if (module.kind != context.kind()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the artifact is for ", target::KindName(module.kind),
                     ", but this device uses ", target::KindName(context.kind())));
  }
  bool computes = false;
  for (const GpuLaunch& launch : module.launches) {
    HONE_RETURN_IF_ERROR(target::CheckLaunch(launch, context));
    computes = computes || !launch.prepack;
  }
  if (!computes) return absl::InvalidArgumentError("the module only packs constants");
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<target::GpuProgram> program,
                        context.Load(module, "the kernel's code"));
  auto kernel = std::unique_ptr<GpuKernel>(
      new GpuKernel(module, std::move(program), std::move(flush_caches)));
  Rng offsets(placement);
  HONE_ASSIGN_OR_RETURN(kernel->workspace_,
                        AllocateFor(context, "workspace", module.workspace_bytes, offsets()));
  HONE_ASSIGN_OR_RETURN(kernel->packed_,
                        AllocateFor(context, "packed constants", module.packed_bytes, offsets()));
  return kernel;
}

absl::Status GpuKernel::SetArguments(DeviceBuffers buffers, const std::vector<size_t>& launches) {
  if (buffers.size() != arguments_) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel has ", arguments_,
                                                   " inputs and outputs, but the workload has ",
                                                   buffers.size()));
  }
  std::vector<target::GpuArgument> arguments;
  for (const DeviceBuffer* const buffer : buffers) {
    arguments.emplace_back(static_cast<const GpuBuffer*>(buffer)->memory());
  }
  for (const auto* const own : {&packed_, &workspace_}) {
    arguments.emplace_back(*own == nullptr ? nullptr : (*own)->memory());
  }
  for (const size_t launch : launches) {
    HONE_RETURN_IF_ERROR(program_->SetArguments(launch, arguments));
  }
  return absl::OkStatus();
}

absl::Status GpuKernel::Prepack(DeviceBuffers buffers) {
  HONE_RETURN_IF_ERROR(SetArguments(buffers, prepack_));
  return prepack_.empty() ? absl::OkStatus() : program_->Run(prepack_, 1).status();
}

absl::Status GpuKernel::PoisonWorkspace() {
  return workspace_ == nullptr ? absl::OkStatus() : workspace_->Poison();
}

absl::StatusOr<std::string> GpuKernel::WrittenOutside() {
  const struct {
    const char* name;
    GpuBuffer* memory;
  } own[] = {{"its workspace", workspace_.get()}, {"its packed constants", packed_.get()}};
  for (const auto& each : own) {
    if (each.memory == nullptr) continue;
    HONE_ASSIGN_OR_RETURN(const std::optional<int64_t> outside, each.memory->WrittenOutside());
    if (outside) return DescribeWriteOutside(each.name, *outside, each.memory->bytes());
  }
  return std::string();
}

absl::StatusOr<double> GpuKernel::Run(DeviceBuffers buffers, int64_t count, bool flushed) {
  HONE_RETURN_IF_ERROR(SetArguments(buffers, run_));
  if (!flushed) return program_->Run(run_, count);
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    HONE_RETURN_IF_ERROR(flush_caches_());
    HONE_ASSIGN_OR_RETURN(const double ns, program_->Run(run_, 1));
    total += ns;
  }
  return total;
}

absl::StatusOr<double> GpuKernel::RunPart(DeviceBuffers, int64_t, int64_t) {
  return absl::UnimplementedError("a GPU kernel can only be run as a whole");
}

ir::ErrorOfOp ErrorsOf(target::Kind kind) {
  switch (kind) {
    case target::Kind::kOpenCl:
      return RoundoffsOf<&MathErrors::opencl>;
    case target::Kind::kCuda:
      return RoundoffsOf<&MathErrors::cuda>;
    case target::Kind::kCpu:
      break;
  }
  return ir::RoundsOnce;
}

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

target::DeviceList ListDevices() {
  target::DeviceList list;
  list.devices.push_back({.device = "cpu",
                          .name = target::DescribeHost().cpu,
                          .driver = "",
                          .target = target::DetectHost()});
  const auto add = [&](const char* interface, const absl::Status& added) {
    if (!added.ok()) list.problems[interface] = std::string(added.message());
  };
  add("cuda", AddCuda(list));
  add("opencl", AddOpenCl(list));
  return list;
}

}  // namespace hone::runner
