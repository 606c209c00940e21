#ifndef HONE_WORKER_RUNNER_KERNEL_H_
#define HONE_WORKER_RUNNER_KERNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/target/loaded_kernel.h"

namespace hone::runner {

using Kernel = target::LoadedKernel;

// Loads the artifact `<folder>/<digest>`. NotFound / Internal: the file cannot be read. DataLoss:
// its bytes do not have the digest that names it. InvalidArgument: not an artifact. Else errors of
// LoadSharedObject.
absl::StatusOr<std::unique_ptr<Kernel>> LoadKernel(const std::string& artifact_path);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_KERNEL_H_
