#ifndef HONE_WORKER_RUNNER_ARTIFACT_FILE_H_
#define HONE_WORKER_RUNNER_ARTIFACT_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/record/artifact.h"

namespace hone::runner {

// Reads the artifact `<folder>/<digest>`. NotFound / Internal: the file cannot be read. DataLoss:
// the contents do not match the digest. InvalidArgument: not an artifact.
absl::StatusOr<record::Artifact> ReadArtifact(const std::string& path);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_ARTIFACT_FILE_H_
