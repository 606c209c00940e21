#ifndef HONE_WORKER_RUNNER_INPUTS_H_
#define HONE_WORKER_RUNNER_INPUTS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/given_inputs.h"
#include "worker/runner/signature.h"

namespace hone::runner {

// How inputs are filled.
enum class Filling {
  // Integer inputs that declare a bound are uniform in [0, bound) in both cases.
  kReal,     // uniform in the range of the input (ChooseInputRanges); integer types in [-8, 7],
             // unsigned ones in [0, 15]
  kInteger,  // integers in [-3, 3] (unsigned: [0, 3]); sums of their products are exact in any
             // order
};

// Fills a tensor. Element i of tensor `number` depends only on (seed, number, i) and the filling,
// so it is the same on every machine.
void FillTensor(const TensorSpec& spec, Filling filling, uint64_t seed, int number, void* data);

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
