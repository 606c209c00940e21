#include "worker/runner/kernel.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"

namespace hone::runner {

absl::StatusOr<record::Artifact> ReadArtifact(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  if (Sha256Of(bytes) != std::filesystem::path(path).filename()) {
    return absl::DataLossError(absl::StrCat(path, " does not match the digest in its name"));
  }
  return record::DecodeArtifact(bytes);
}

absl::StatusOr<std::unique_ptr<Kernel>> LoadKernel(const std::string& artifact_path) {
  HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, ReadArtifact(artifact_path));
  if (record::HoldsGpuModule(artifact)) {
    return absl::InvalidArgumentError("the artifact is for a GPU, but this device is a CPU");
  }
  return Kernel::LoadSharedObject(artifact.shared_object);
}

}  // namespace hone::runner
