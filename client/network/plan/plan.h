#ifndef HONE_CLIENT_NETWORK_PLAN_PLAN_H_
#define HONE_CLIENT_NETWORK_PLAN_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/network/graph/graph.h"
#include "client/network/runtime/plan_format.h"
#include "common/base/digest.h"

namespace hone::network {

// Where a tensor is; see runtime/plan_format.h.
enum class PlaceKind : uint32_t {
  kInput = HONE_PLACE_INPUT,
  kOutput = HONE_PLACE_OUTPUT,
  kWeights = HONE_PLACE_WEIGHTS,
  kArena = HONE_PLACE_ARENA,
  kAbsent = HONE_PLACE_ABSENT,
};

struct PlanTensor {
  std::string name;
  graph::TensorType type;
  PlaceKind place = PlaceKind::kArena;
  int number = 0;  // of the input or output that holds the tensor
  int64_t offset = 0;
};

// A check of the elements of a tensor; see HonePlanCheck.
struct PlanCheck {
  int tensor = 0;
  int64_t extent = 0;
  int64_t column = 0, columns = 1;
};

// A call of a kernel, or a copy of tensors[0] to tensors[1].
struct PlanStep {
  static constexpr int kCopy = -1;

  std::string name;
  int kernel = kCopy;
  std::vector<int> tensors;   // inputs, then outputs
  int64_t packed_offset = 0;  // in the weights file, if the kernel has packed constants
  std::vector<PlanCheck> checks;
};

struct PlanKernel {
  std::string name;
  int buffers = 0;
  int64_t packed_bytes = 0;
};

// How a network runs: which kernels to call with which tensors. The runtime (runtime/) executes the
// plan.
struct Plan {
  std::vector<PlanTensor> tensors;
  std::vector<PlanStep> steps;
  std::vector<PlanKernel> kernels;
  std::vector<int> inputs;   // tensors
  std::vector<int> outputs;  // tensors
  int64_t arena_bytes = 0;
  int64_t weights_bytes = 0;  // the size of the weights file
  Digest weights;             // identifies the weights file

  // A check as the runtime does it.
  HonePlanCheck ForRuntime(const PlanCheck& check) const;
  // The bytes of runtime/plan_format.h.
  std::string Encode() const;
};

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_PLAN_PLAN_H_
