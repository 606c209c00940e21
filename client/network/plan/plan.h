#ifndef HONE_CLIENT_NETWORK_PLAN_PLAN_H_
#define HONE_CLIENT_NETWORK_PLAN_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/network/graph/graph.h"
#include "client/network/runtime/plan_format.h"
#include "common/base/digest.h"
#include "common/target/gpu_module.h"

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
  int64_t packed_offset = 0;  // in the weights, if the kernel has packed constants
  std::vector<PlanCheck> checks;
};

struct PlanKernel {
  std::string name;
  int buffers = 0;
  int64_t packed_bytes = 0;
  std::shared_ptr<const target::GpuModule> module = nullptr;  // of a GPU
  std::string portable = "";                                  // its code as PTX; "": not known
};

// A part of the weights that has a buffer of its own on a GPU; see HonePlanPiece.
struct PlanPiece {
  int64_t offset = 0, bytes = 0;
  bool only_for_packing = false;
};

// How a network runs: which kernels to call with which tensors. The runtime (runtime/) executes the
// plan.
struct Plan {
  std::vector<PlanTensor> tensors;
  std::vector<PlanStep> steps;
  std::vector<PlanKernel> kernels;
  bool is_gpu = false;
  std::vector<PlanStep> packing;  // on a GPU: runs once, when the network is opened
  std::vector<PlanPiece> pieces;  // on a GPU: by offset
  std::vector<int> inputs;        // tensors
  std::vector<int> outputs;       // tensors
  int64_t arena_bytes = 0;
  int64_t weights_bytes = 0;  // the size of the weights file
  Digest weights;             // identifies the weights file

  // The bytes of runtime/plan_format.h.
  std::string Encode() const;
};

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_PLAN_PLAN_H_
