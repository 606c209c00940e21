#ifndef HONE_WORKER_RUNNER_INPUTS_H_
#define HONE_WORKER_RUNNER_INPUTS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/given_inputs.h"
#include "worker/runner/elements.h"
#include "worker/runner/signature.h"

namespace hone::runner {

// Returns the seed of a workload's inputs. It depends only on the digest, so one reference serves
// every run.
uint64_t InputSeed(absl::string_view workload_digest);

// The inputs that a workload is measured on, the same for each of its candidates: those of the
// seed, or data of a user in place of some of them. Small integers, with which kernels must be
// exact, are always those of the seed. Immutable.
class Inputs {
 public:
  static Inputs Seeded(absl::string_view workload_digest);
  // Opens the data of a user (common/record/given_inputs.h). NotFound / Internal: the file cannot
  // be read. DataLoss: its digest is another one. InvalidArgument: it does not fit the workload.
  static absl::StatusOr<Inputs> Given(absl::string_view workload_digest, absl::string_view digest,
                                      const std::string& path, const Signature& signature);

  // The key of the workload's reference on these inputs, 32 hex digits.
  const std::string& key() const { return key_; }
  // As results name them: record::kSeededInputs or the digest of the data.
  const std::string& name() const { return name_; }
  // Fills input `number` of the workload.
  void Fill(const Signature& signature, Filling filling, int number, void* data) const;

 private:
  uint64_t seed_ = 0;
  std::string key_;
  std::string name_;
  std::shared_ptr<const std::string> bytes_;  // owns what given_ refers to
  record::GivenInputs given_;
};

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_INPUTS_H_
