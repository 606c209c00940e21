#include "worker/runner/kernel.h"

#include "common/base/status_macros.h"
#include "worker/runner/artifact_file.h"

namespace hone::runner {

absl::StatusOr<std::unique_ptr<Kernel>> LoadKernel(const std::string& artifact_path) {
  HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, ReadArtifact(artifact_path));
  if (record::HoldsGpuModule(artifact)) {
    return absl::InvalidArgumentError("the artifact is for a GPU, but this device is a CPU");
  }
  return Kernel::LoadSharedObject(artifact.shared_object);
}

}  // namespace hone::runner
