#ifndef HONE_CLIENT_NETWORK_PLAN_PLAN_H_
#define HONE_CLIENT_NETWORK_PLAN_PLAN_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/input_masks.h"
#include "client/network/graph/partition.h"
#include "client/network/plan/network_kernel.h"
#include "client/network/runtime/plan_format.h"
#include "common/base/digest.h"
#include "common/target/gpu_module.h"
#include "common/target/target.h"

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
  int64_t least = 0;  // -extent, or 0
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

// The part of a plan for one value of the network's open dimension; see HonePlanSize.
struct PlanSize {
  int64_t value = 0;
  std::string name;  // of the dimension
  int first_tensor = 0, tensors = 0;
  int first_step = 0, steps = 0;
  bool pads = false;
  std::vector<graph::InputMask> masks;  // if it pads
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
  std::vector<int> inputs;        // tensors; those of each size follow each other
  std::vector<int> outputs;       // tensors
  std::vector<PlanSize> sizes;    // by value; empty if all shapes are fixed
  int64_t arena_bytes = 0;
  int64_t weights_bytes = 0;  // the size of the weights file
  Digest weights;             // identifies the weights file

  // The bytes of runtime/plan_format.h.
  std::string Encode() const;
  // The part of `inputs` or `outputs` of the largest size.
  absl::Span<const int> OfLargest(const std::vector<int>& ends) const {
    const size_t count = ends.size() / std::max<size_t>(sizes.size(), 1);
    return absl::MakeConstSpan(ends).last(count);
  }
};

// Completes the plan of a GPU: places its packed constants, whose offsets begin at 0, behind the
// end of the weights file, each as a piece. Does nothing for a CPU.
void PlacePacked(Plan& plan);

// How networks are divided for a kind of device. The tasks of a network depend on it, so it must
// not depend on anything else.
graph::PartitionOptions PartitionOptionsFor(target::Kind kind);

// A part of the weights file: an unpacked constant, or the packed constants of a step. A GPU packs
// constants itself, so its file has only the former.
struct WeightsPiece {
  int64_t offset = 0;
  graph::ValueId constant = graph::kNoValue;
  int task = -1;                       // if packed: the kernel of the plan that packs it
  std::vector<graph::ValueId> inputs;  // if packed: the inputs of the step
  int size = 0;                        // the number of the size whose graph has the values
};

struct PlannedNetwork {
  Plan plan;  // without the digest of the weights
  std::vector<WeightsPiece> pieces;
};

// Plans the memory and the steps of a network. `kernels` has one for each task. Aliases become no
// steps of the plan, but an output of the network that is a view of another tensor is copied. The
// unpacked form of a constant is left out of the weights if kernels read only the packed form; on a
// GPU, it is removed from the device after packing.
//
// InvalidArgument: the number of kernels is wrong, or a kernel belongs to another workload.
absl::StatusOr<PlannedNetwork> MakePlan(const graph::Graph& graph,
                                        const graph::Partition& partition,
                                        absl::Span<const NetworkKernel> kernels);

// A network for one value of its open dimension.
struct NetworkOfSize {
  int64_t value = 0;
  const graph::Graph* graph = nullptr;
  const graph::Partition* partition = nullptr;
  absl::Span<const NetworkKernel> kernels;  // one for each task
  bool pads = false;  // see HonePlanSize; graph::CheckSamplesAreIndependent must have proved it
  std::vector<graph::InputMask> masks = {};  // for which it has proved it
};

// One plan for all sizes of a network, which shares the kernels, constants and packed constants
// that are equal, and the memory between kernels.
struct JoinedNetwork {
  PlannedNetwork planned;
  std::vector<NetworkKernel> kernels;       // of the plan
  std::vector<const graph::Graph*> graphs;  // of the sizes
};

// Plans a network for several sizes, by ascending value; `dimension` is the name of what is open.
// One network is planned as by MakePlan, with fixed shapes. Errors as for MakePlan.
absl::StatusOr<JoinedNetwork> JoinPlans(const std::string& dimension,
                                        absl::Span<const NetworkOfSize> sizes);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_PLAN_PLAN_H_
