#ifndef HONE_CLIENT_NETWORK_PLAN_GPU_PLAN_H_
#define HONE_CLIENT_NETWORK_PLAN_GPU_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "client/network/graph/graph.h"
#include "client/network/plan/make_plan.h"
#include "client/network/plan/network_kernel.h"

namespace hone::network {

// A part of a buffer on a GPU.
struct GpuPart {
  int buffer = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
};

// A launch of a kernel, or a copy of parts[0] to parts[1].
struct GpuCommand {
  static constexpr int kCopy = -1;
  static constexpr int kNull = -1;

  int kernel = kCopy;      // the task
  int launch = 0;          // of its module
  std::vector<int> parts;  // the parameters; kNull: a null pointer
};

// A plan as memory and commands of a GPU. Each constant and the packed constants of a step have a
// buffer of their own, because devices limit the size of buffers.
struct GpuPlan {
  struct Buffer {
    int64_t bytes = 0;
    graph::ValueId constant = graph::kNoValue;  // its content; kNoValue: undefined at first
    bool only_for_packing = false;              // not needed once the constants are packed
  };
  std::vector<Buffer> buffers;
  std::vector<GpuPart> parts;
  std::vector<GpuCommand> packing;  // run once, in order
  // Of each step of the plan: the commands of a run, in order. A copy of an empty tensor has none.
  std::vector<std::vector<GpuCommand>> steps;
  std::vector<int> inputs, outputs;  // parts
};

// REQUIRES: `planned` is the plan for these kernels, which are for GPUs.
GpuPlan MakeGpuPlan(const PlannedNetwork& planned, const graph::Graph& graph,
                    absl::Span<const NetworkKernel> kernels);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_PLAN_GPU_PLAN_H_
