#include "client/network/plan/network_kernel.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/target/target.h"

namespace hone::network {
namespace {

absl::Status LoadForCpu(const record::Artifact& artifact, NetworkKernel& kernel) {
  HONE_RETURN_IF_ERROR(target::CheckRunsOn(kernel.target, target::DetectHost()));
  HONE_ASSIGN_OR_RETURN(kernel.loaded,
                        target::LoadedKernel::LoadSharedObject(artifact.shared_object));
  kernel.packed_bytes = kernel.loaded->library().packed_bytes();
  return absl::OkStatus();
}

absl::Status ReadForGpu(const record::Artifact& artifact, const ir::Workload& workload,
                        NetworkKernel& kernel) {
  HONE_ASSIGN_OR_RETURN(target::GpuModule module,
                        target::GpuModule::Decode(artifact.shared_object));
  const size_t buffers = workload.Inputs().size() + workload.Outputs().size();
  if (module.kind != kernel.target.kind || module.arguments != static_cast<int>(buffers)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the artifact of ", workload.name, " has kernels of another kind"));
  }
  kernel.packed_bytes = module.packed_bytes;
  kernel.module = std::make_shared<const target::GpuModule>(std::move(module));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NetworkKernel> LoadKernel(const record::Artifact& artifact) {
  NetworkKernel kernel{.object = artifact.object};
  HONE_ASSIGN_OR_RETURN(kernel.target, target::Target::FromText(artifact.target));
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(artifact.workload));
  HONE_RETURN_IF_ERROR(kernel.target.kind == target::Kind::kCpu
                           ? LoadForCpu(artifact, kernel)
                           : ReadForGpu(artifact, workload, kernel));
  HONE_ASSIGN_OR_RETURN(kernel.reads, record::InputsRead(artifact, workload.Inputs().size()));
  if (kernel.packed_bytes == 0) kernel.reads.assign(kernel.reads.size(), true);
  return kernel;
}

}  // namespace hone::network
