#ifndef HONE_WORKER_RUNNER_KERNEL_H_
#define HONE_WORKER_RUNNER_KERNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/record/artifact.h"
#include "common/target/loaded_kernel.h"

namespace hone::runner {

// Reads the artifact `<folder>/<digest>`. NotFound / Internal: the file cannot be read. DataLoss:
// the contents do not match the digest. InvalidArgument: not an artifact.
absl::StatusOr<record::Artifact> ReadArtifact(const std::string& path);

using Kernel = target::LoadedKernel;

// Loads the artifact `<folder>/<digest>`. NotFound / Internal: the file cannot be read. DataLoss:
// the contents do not match the digest. InvalidArgument: not an artifact of a CPU. Also returns the
// errors of LoadSharedObject.
absl::StatusOr<std::unique_ptr<Kernel>> LoadKernel(const std::string& artifact_path);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_KERNEL_H_
