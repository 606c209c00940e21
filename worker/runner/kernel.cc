#include "worker/runner/kernel.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/record/artifact.h"

namespace hone::runner {

absl::StatusOr<std::unique_ptr<Kernel>> LoadKernel(const std::string& artifact_path) {
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(artifact_path));
  const std::string name = std::filesystem::path(artifact_path).filename();
  if (DigestOf(bytes).ToHex() != name) {
    return absl::DataLossError(
        absl::StrCat(artifact_path, " does not match the digest in its name"));
  }
  HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, record::DecodeArtifact(bytes));
  return Kernel::LoadSharedObject(artifact.shared_object);
}

}  // namespace hone::runner
