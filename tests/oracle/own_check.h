#ifndef HONE_TESTS_ORACLE_OWN_CHECK_H_
#define HONE_TESTS_ORACLE_OWN_CHECK_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ir/workload.h"
#include "common/target/target.h"
#include "worker/runner/check.h"
#include "worker/runner/inputs.h"
#include "worker/runner/kernel.h"

namespace hone::oracle {

// Hone's own check of a kernel's outputs, as its runner does it before timing. It must accept every
// kernel that the oracle finds correct. Otherwise, the workload could not be tuned.
class OwnCheck {
 public:
  // Builds and runs the reference kernel, and checks some elements with the interpreter. `folder`
  // must exist and outlive this object. Internal: the reference kernel cannot be built. Also
  // returns errors of runner::MakeReference.
  static absl::StatusOr<std::unique_ptr<OwnCheck>> Create(
      std::shared_ptr<const ir::Workload> workload, const target::Target& target,
      std::string folder);

  // Runs a kernel on the runner's inputs. FailedPrecondition: the runner would reject its outputs;
  // the message is the runner's. Also returns errors of loading and running the kernel.
  absl::Status Check(const std::string& artifact_path, double tolerance) const;

 private:
  OwnCheck(std::shared_ptr<const ir::Workload> workload, std::string path)
      : workload_(std::move(workload)), path_(std::move(path)) {}

  // Runs the kernel on one filling of the inputs and checks each output.
  absl::Status CheckOn(runner::Filling filling, runner::Kernel& kernel,
                       absl::FunctionRef<runner::CheckResult(size_t, const void*)> check) const;

  std::shared_ptr<const ir::Workload> workload_;
  std::string path_;  // of the reference
};

}  // namespace hone::oracle

#endif  // HONE_TESTS_ORACLE_OWN_CHECK_H_
