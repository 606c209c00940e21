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
#include "worker/runner/elements.h"
#include "worker/runner/kernel.h"

namespace hone::oracle {

// Hone's own check of a kernel's outputs, as its runner makes it before it times anything. What the
// oracle finds right, this check must accept; or nobody could tune the workload.
class OwnCheck {
 public:
  // Builds and runs the reference kernel, and lets the interpreter confirm some elements. `folder`
  // exists and outlives this. Internal: the reference kernel is not built. Else errors of
  // runner::MakeReference.
  static absl::StatusOr<std::unique_ptr<OwnCheck>> Create(
      std::shared_ptr<const ir::Workload> workload, const target::Target& target,
      std::string folder);

  // Runs a kernel on the runner's inputs. FailedPrecondition: the runner would call its outputs
  // wrong; the message is the runner's. Else errors of loading and running it.
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
