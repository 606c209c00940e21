#include "tests/worker/compile/lower/random_gpu_schedule.h"

#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/ir/intrinsic.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/primitive/tensorize.h"
#include "tests/common/schedule/random_trace.h"
#include "tests/common/schedule/random_workload.h"

namespace hone::lower {
namespace {

using ir::NodeId;

constexpr const char* kBlockAxes[] = {"blockIdx.x", "blockIdx.y", "blockIdx.z"};
constexpr const char* kThreadAxes[] = {"threadIdx.x", "threadIdx.y", "threadIdx.z"};

class Binder {
 public:
  Binder(ir::Program& program, Rng& rng) : program_(program), rng_(rng) {}

  void BindNest(NodeId nest) {
    threads_ = 2 + static_cast<int64_t>(rng_.Below(3));
    NodeId at = nest;
    for (int axis = 0; axis < 3 && program_.IsLoop(at) && rng_.Below(3) > 0; ++axis) {
      if (program_.node(at).children.size() != 1) break;
      if (!schedule::Bind(program_, at, kBlockAxes[axis]).ok()) break;
      at = program_.node(at).children[0];
    }
    BindThreads(at, 0);
  }

 private:
  void BindThreads(NodeId id, int axis) {
    if (!program_.IsLoop(id) || axis == 3) return;
    int next = axis;
    if (program_.node(id).loop == ir::LoopKind::kSerial && rng_.Below(3) > 0) {
      NodeId thread = id;
      if (rng_.Below(2) == 0) {
        const auto parts = schedule::Split(program_, id, {{0}, {threads_}});
        if (parts.ok()) thread = (*parts)[rng_.Below(2)];
        if (parts.ok()) id = (*parts)[1];
      }
      if (schedule::Bind(program_, thread, kThreadAxes[axis]).ok()) ++next;
    }
    for (const NodeId child : std::vector<NodeId>(program_.node(id).children.begin(),
                                                  program_.node(id).children.end())) {
      BindThreads(child, next);
    }
  }

  ir::Program& program_;
  Rng& rng_;
  int64_t threads_ = 2;
};

void BindAtRandom(ir::Program& program, Rng& rng) {
  for (const NodeId kernel : std::vector<NodeId>(program.kernels)) {
    for (const NodeId nest : std::vector<NodeId>(program.node(kernel).children.begin(),
                                                 program.node(kernel).children.end())) {
      Binder(program, rng).BindNest(nest);
    }
  }
}

bool HasCode(const schedule::Step& step) {
  return step.primitive != "bind" && step.primitive != "parallel" &&
         step.primitive != "tensorize" && step.primitive != "thread_count";
}

// Makes an instruction compute the last terms of a block's innermost reduction that is a multiple
// of them. Returns whether that is legal.
bool Tensorized(ir::Program& program, NodeId block, const ir::Intrinsic& intrinsic) {
  const int64_t terms = ir::DescriptionOf(intrinsic).stages.back().reduce[0].extent;
  const std::vector<NodeId> above = program.LoopsAbove(block);
  for (size_t i = above.size(); i-- > 0;) {
    if (!program.IsReductionLoop(above[i], program.BlockOf(block)) ||
        program.node(above[i]).extent.value % terms != 0) {
      continue;
    }
    const auto parts = schedule::Split(program, above[i], {{0}, {terms}});
    if (!parts.ok()) return false;
    std::vector<NodeId> order(above.begin() + static_cast<ptrdiff_t>(i) + 1, above.end());
    order.push_back((*parts)[1]);
    return (order.size() == 1 || schedule::Reorder(program, order).ok()) &&
           schedule::Tensorize(program, (*parts)[1], intrinsic.name).ok();
  }
  return false;
}

void UseInstructions(ir::Program& program, const target::Target& target) {
  for (const NodeId block : program.AllBlocks()) {
    for (const ir::Intrinsic& intrinsic : ir::Intrinsics()) {
      if (intrinsic.arch != target.arch || !target.HasFeature(intrinsic.feature)) continue;
      ir::Program changed = program;
      if (!Tensorized(changed, block, intrinsic)) continue;
      program = std::move(changed);
      break;
    }
  }
}

}  // namespace

absl::StatusOr<RandomGpuSchedule> MakeRandomGpuSchedule(uint64_t seed,
                                                        const target::Target* target) {
  schedule::RandomTrace random = schedule::MakeRandomTrace(seed, static_cast<int>(seed % 4) * 6);
  std::erase_if(random.steps, [](const schedule::Step& step) { return !HasCode(step); });
  random = schedule::TakeSteps(random.workload, random.steps);
  RandomGpuSchedule made{.workload = random.workload, .program = std::move(random.program)};
  Rng rng(seed, 4), bindings(seed, 8);
  if (target != nullptr) UseInstructions(made.program, *target);
  BindAtRandom(made.program, bindings);
  for (const ir::Values& values : schedule::SmallIntegerInputs(*made.workload, rng)) {
    made.inputs.emplace_back(values.begin(), values.end());
  }
  HONE_ASSIGN_OR_RETURN(made.outputs, ir::Interpret(*made.workload, made.inputs));
  return made;
}

}  // namespace hone::lower
