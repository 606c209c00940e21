#include "tests/common/schedule/random_step.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ir/intrinsic.h"
#include "common/schedule/replay.h"

namespace hone::schedule {
namespace {

using ir::NodeId;

int64_t Pick(Rng& rng, int64_t bound) { return static_cast<int64_t>(rng.Below(bound)); }

// A layout map for a buffer: its dimensions in random order, one of them possibly divided.
std::string RandomMap(Rng& rng, size_t rank, std::vector<int64_t>& numbers) {
  std::vector<std::string> pieces;
  const size_t cut = rng.Below(rank + 1);
  for (size_t d = 0; d < rank; ++d) {
    const std::string name = absl::StrCat("d", d);
    if (d == cut) {
      numbers.push_back(1 + Pick(rng, 4));
      pieces.push_back(name + " / $0");
      pieces.push_back(name + " % $0");
    } else {
      pieces.push_back(name);
    }
  }
  for (size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[rng.Below(i)]);
  std::string names;
  for (size_t d = 0; d < rank; ++d) absl::StrAppend(&names, d ? ", d" : "d", d);
  return absl::StrCat(names, " -> ", absl::StrJoin(pieces, ", "));
}

Step RandomStep(Rng& rng, const ir::Program& program, const std::vector<NodeId>& blocks,
                NodeId block) {
  const std::vector<NodeId> above = program.LoopsAbove(block);
  const int depth = static_cast<int>(above.size());
  Step step{.block = program.BlockOf(block).name};
  const auto extent_of = [&](int position) { return program.node(above[position]).extent.value; };
  const auto any_loop = [&] { return static_cast<int>(rng.Below(depth)); };
  const char* const kNames[] = {"split",
                                "split",
                                "split",
                                "fuse",
                                "fuse",
                                "reorder",
                                "reorder",
                                "reorder",
                                "reorder_by",
                                "loop_kind",
                                "parallel",
                                "vectorize",
                                "unroll",
                                "compute_at",
                                "compute_at",
                                "compute_at",
                                "reverse_compute_at",
                                "reverse_compute_at",
                                "compute_inline",
                                "decompose_reduction",
                                "decompose_reduction",
                                "transform_layout",
                                "register_tile",
                                "register_tile",
                                "cache_write",
                                "cache_read",
                                "thread_count",
                                "annotate",
                                "reverse_compute_inline",
                                "reverse_compute_inline",
                                "rfactor",
                                "rfactor",
                                "add_unit_loop",
                                "loop_partition",
                                "reorder_space",
                                "set_scope",
                                "storage_align",
                                "bind",
                                "double_buffer",
                                "software_pipeline",
                                "async_copy",
                                "blockize",
                                "tensorize",
                                "tensorize",
                                "pad_einsum",
                                "pad_einsum",
                                "pad_einsum",
                                "decompose_padding"};
  step.primitive = depth == 0
                       ? "compute_inline"
                       : kNames[rng.Below(std::size(kNames))];  // the init of a scalar has no loop
  const absl::string_view name = step.primitive;
  if (name == "split") {
    const int position = any_loop();
    const int64_t extent = extent_of(position);
    step.loops = {position};
    const char* const kSamplings[] = {"", "", "sample_perfect_tile", "sample_tile",
                                      "sample_categorical"};
    step.sampling = kSamplings[rng.Below(std::size(kSamplings))];
    if (step.sampling == "sample_perfect_tile" || step.sampling == "sample_tile") {
      const Site site{
          .kind = step.sampling == "sample_tile" ? Site::Kind::kTile : Site::Kind::kPerfectTile,
          .count = 2 + static_cast<int>(rng.Below(2)),
          .extent = extent};
      step.numbers.resize(site.count);
      site.Sample(rng, absl::MakeSpan(step.numbers));
    } else {
      step.numbers = {0, 1 + Pick(rng, extent + (rng.Below(8) == 0))};
    }
  } else if (name == "fuse") {
    const int position = any_loop();
    const int count = 1 + static_cast<int>(rng.Below(3));
    for (int i = 0; i < count; ++i) step.loops.push_back(std::min(position + i, depth - 1));
  } else if (name == "loop_kind") {
    step.loops = {any_loop()};
    step.numbers = {Pick(rng, 3)};
  } else if (name == "reorder_by") {
    const int position = any_loop();
    step.loops = {position, depth - 1};
    step.text = "0 1 | 1 0";
    step.numbers = {Pick(rng, 2)};
  } else if (name == "reorder") {
    std::vector<int> positions(depth);
    for (int i = 0; i < depth; ++i) positions[i] = i;
    for (int i = depth; i > 1; --i) std::swap(positions[i - 1], positions[rng.Below(i)]);
    positions.resize(std::min(depth, 2 + static_cast<int>(rng.Below(3))));
    step.loops = positions;
  } else if (name == "compute_at" || name == "reverse_compute_at") {
    const NodeId target = blocks[rng.Below(blocks.size())];
    step.target = program.BlockOf(target).name;
    step.loops = {
        static_cast<int>(rng.Below(std::max<size_t>(1, program.LoopsAbove(target).size())))};
    if (name == "compute_at" && step.target == FirstReader(program, block) && rng.Below(2) == 0) {
      step.sampling = "sample_compute_location";
    }
  } else if (name == "transform_layout") {
    step.text = RandomMap(rng, program.buffers[program.BlockOf(block).outputs[0]].shape.size(),
                          step.numbers);
  } else if (name == "register_tile") {
    std::vector<int> spatial, reduce;
    for (int i = 0; i < depth; ++i)
      (program.IsReductionLoop(above[i], program.BlockOf(block)) ? reduce : spatial).push_back(i);
    const auto pick = [&](const std::vector<int>& from) {
      return from.empty() || rng.Below(8) == 0 ? any_loop() : from[rng.Below(from.size())];
    };
    step.loops = {pick(spatial), pick(spatial), pick(reduce)};
    step.numbers = {1 + Pick(rng, 4), 1 + Pick(rng, 3), int64_t{1} << rng.Below(3),
                    1 + Pick(rng, 3)};
  } else if (name == "cache_write" || name == "cache_read") {
    step.scope = rng.Below(2) == 0 ? "global" : "local";
    if (name == "cache_read") step.text = program.buffers[rng.Below(program.buffers.size())].name;
  } else if (name == "pad_einsum") {
    for (size_t i = 0; i < program.BlockOf(block).iters.size(); ++i) {
      step.numbers.push_back(1 + Pick(rng, 4));
    }
  } else if (name == "tensorize") {
    step.loops = {any_loop()};
    step.text = std::string(ir::Intrinsics()[rng.Below(ir::Intrinsics().size())].name);
  } else if (name == "set_scope") {
    const char* const kScopes[] = {"global", "local", "shared", "fragment"};
    step.scope = kScopes[rng.Below(4)];
  } else if (name == "storage_align") {
    step.numbers = {Pick(rng, 2), 1 + Pick(rng, 8), 0};
    step.numbers[2] = Pick(rng, step.numbers[1]);
  } else if (name == "thread_count" || name == "annotate" || name == "bind" ||
             name == "loop_partition" || name == "rfactor" || name == "add_unit_loop" ||
             name == "software_pipeline" || name == "reorder_space") {
    // Usually choose loops that suit the primitive.
    std::vector<int> fitting;
    for (int i = 0; i < depth; ++i) {
      const bool parallel = program.node(above[i]).loop == ir::LoopKind::kParallel;
      const bool reduces = program.IsReductionLoop(above[i], program.BlockOf(block));
      const bool fits = name == "thread_count" || name == "annotate" ? parallel
                        : name == "rfactor"                          ? reduces
                        : name == "bind"                             ? !reduces || rng.Below(2) == 0
                        : name == "software_pipeline" ? program.node(above[i]).children.size() > 1
                                                      : true;
      if (fits) fitting.push_back(i);
    }
    const int position =
        fitting.empty() || rng.Below(8) == 0 ? any_loop() : fitting[rng.Below(fitting.size())];
    step.loops = {position};
    if (name == "thread_count") step.numbers = {1 + Pick(rng, 4)};
    if (name == "software_pipeline") step.numbers = {2 + Pick(rng, 3)};
    if (name == "rfactor") step.numbers = {Pick(rng, 4) - 1};
    if (name == "loop_partition") {
      for (int64_t at = 1 + Pick(rng, extent_of(position)); at < extent_of(position);
           at += 1 + Pick(rng, extent_of(position))) {
        step.numbers.push_back(at);
      }
      if (step.numbers.empty()) step.numbers = {1};
    }
    if (name == "reorder_space") {
      step.loops = {std::max(0, position - 1), position};
      step.text = rng.Below(2) == 0 ? "grouped" : "morton";
      step.numbers = {1 + Pick(rng, 4)};
    }
    if (name == "bind") {
      const char* const kAxes[] = {"blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y",
                                   "vthread"};
      step.text = kAxes[rng.Below(std::size(kAxes))];
    }
    if (name == "add_unit_loop" && rng.Below(2) == 0) step.loops = {};
    if (name == "annotate") {
      const char* const kKeys[] = {"omp_schedule", "omp_schedule", "prefetch", "nontemporal"};
      step.text = kKeys[rng.Below(std::size(kKeys))];
      step.numbers = {step.text == "omp_schedule" ? Pick(rng, 4) : 1};
      if (step.text == "nontemporal") step.loops = {};
      if (step.text == "prefetch") step.loops = {any_loop()};
    }
  } else if (name != "compute_inline" && name != "reverse_compute_inline" &&
             name != "double_buffer" && name != "async_copy") {
    step.loops = {any_loop()};
  }
  return step;
}

// Whether a block reads the operand types of an instruction.
bool ReadsOperands(const ir::Program& program, NodeId block, const ir::Intrinsic& intrinsic) {
  const ir::Workload& description = ir::DescriptionOf(intrinsic);
  for (ir::BufferId operand : description.Inputs()) {
    bool read = false;
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      read |= program.buffers[b].dtype == description.tensors[operand].dtype &&
              program.Reads(program.BlockOf(block), static_cast<ir::BufferId>(b));
    }
    if (!read) return false;
  }
  return true;
}

// The steps that split the loops of an instruction off a block's loops; empty if no loops fit.
std::vector<Step> TensorizeSteps(Rng& rng, const ir::Program& program, NodeId block,
                                 const ir::Intrinsic& intrinsic) {
  const ir::Stage& stage = ir::DescriptionOf(intrinsic).stages.back();
  std::vector<ir::Axis> axes = stage.spatial;
  std::erase_if(axes, [](const ir::Axis& axis) { return axis.extent == 1; });  // no loop
  const size_t spatial = axes.size();
  axes.insert(axes.end(), stage.reduce.begin(), stage.reduce.end());
  const std::vector<NodeId> above = program.LoopsAbove(block);
  const auto depth = static_cast<int>(above.size());
  // Each axis, from the last on, takes the innermost loop that fits and is not taken.
  std::vector<int> loops(axes.size(), -1);
  for (size_t a = axes.size(); a-- > 0;) {
    for (int i = 0; i < depth; ++i) {
      const bool reduces = program.IsReductionLoop(above[i], program.BlockOf(block));
      if (reduces != (a >= spatial) || std::ranges::count(loops, i) > 0) continue;
      if (program.node(above[i]).extent.value % axes[a].extent == 0) loops[a] = i;
    }
    if (loops[a] < 0) return {};
  }
  const Step of{.block = program.BlockOf(block).name};
  std::vector<Step> steps;
  // The position of a loop after the splits: each split before it adds one.
  const auto position = [&](int loop, size_t splits) {
    const auto inner = [&](int other) { return other < loop; };
    return loop + static_cast<int>(std::count_if(loops.begin(), loops.begin() + splits, inner));
  };
  for (size_t a = 0; a < axes.size(); ++a) {
    Step& split = steps.emplace_back(of);
    split.primitive = "split";
    split.loops = {position(loops[a], a)};
    split.numbers = {0, axes[a].extent};
  }
  Step& reorder = steps.emplace_back(of);
  reorder.primitive = "reorder";
  std::vector<int> inner;
  for (const int loop : loops) inner.push_back(position(loop, axes.size()) + 1);
  for (int at = 0; at < depth + static_cast<int>(axes.size()); ++at) {
    if (std::ranges::count(inner, at) == 0) reorder.loops.push_back(at);
  }
  reorder.loops.insert(reorder.loops.end(), inner.begin(), inner.end());
  if (rng.Below(4) == 0) return steps;  // only the nest, for other primitives
  Step& tensorize = steps.emplace_back(of);
  tensorize.primitive = "tensorize";
  tensorize.loops = {depth};
  tensorize.text = std::string(intrinsic.name);
  return steps;
}

template <typename T>
const T& PickFrom(Rng& rng, const std::vector<T>& from) {
  return from[rng.Below(from.size())];
}

}  // namespace

Step Garbled(Rng& rng, Step step) {
  const std::vector<int64_t> numbers = {-1, 0, 1, 3, 1 << 20, INT32_MAX, INT32_MIN};
  const std::vector<std::string> texts = {"", "0 0", "d0 -> d0", "d0, d1 -> d1, d0", "x"};
  for (int64_t& number : step.numbers) {
    if (rng.Below(2) == 0) number = PickFrom(rng, numbers);
  }
  for (int& loop : step.loops) {
    if (rng.Below(3) == 0) loop = static_cast<int>(rng.Below(4));
  }
  if (rng.Below(4) == 0) step.text = PickFrom(rng, texts);
  if (rng.Below(8) == 0) step.scope = PickFrom(rng, texts);
  step.sampling.clear();
  return step;
}

std::vector<Step> RandomSteps(Rng& rng, const ir::Program& program) {
  const std::vector<NodeId> blocks = program.AllBlocks();
  const NodeId block = blocks[rng.Below(blocks.size())];
  const Step step = RandomStep(rng, program, blocks, block);
  if (step.primitive != "tensorize" || rng.Below(4) == 0) return {step};
  for (NodeId candidate : blocks) {
    for (const ir::Intrinsic& intrinsic : ir::Intrinsics()) {
      if (!ReadsOperands(program, candidate, intrinsic) || rng.Below(3) == 0) continue;
      std::vector<Step> steps = TensorizeSteps(rng, program, candidate, intrinsic);
      if (!steps.empty()) return steps;
    }
  }
  return {step};
}

}  // namespace hone::schedule
