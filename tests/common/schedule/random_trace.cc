#include "tests/common/schedule/random_trace.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/schedule/primitive/annotate.h"
#include "common/schedule/primitive/copy_nest.h"
#include "common/schedule/primitive/data.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/primitive/padding.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/primitive/register_tile.h"
#include "common/schedule/primitive/tensorize.h"
#include "common/schedule/replay.h"
#include "tests/common/schedule/random_workload.h"

namespace hone::schedule {
namespace {

using ir::Extent;
using ir::ExtentTable;
using ir::NodeId;

// The name of the first block that reads what a block computes; "" when there is none.
std::string FirstReader(const ir::Program& program, NodeId block) {
  const std::vector<NodeId> readers = program.ReadersOf(program.BlockOf(block).outputs[0]);
  return readers.empty() ? "" : program.BlockOf(readers[0]).name;
}

// Applies a step to a program, and writes it as instructions of a trace.
class Taker {
 public:
  Taker(ir::Program& program, TraceBuilder& builder, std::vector<int64_t>& decisions)
      : program_(program), builder_(builder), decisions_(decisions) {}

  absl::Status Take(const Step& step) {
    const NodeId block = program_.FindBlock(step.block);
    if (block == ir::kNoNode) return absl::NotFoundError("no such block");
    if (step.sampling == "sample_compute_location" &&
        step.target != FirstReader(program_, block)) {
      return absl::NotFoundError("the location is sampled at another block");
    }
    const bool placed = !step.target.empty();
    const NodeId owner = placed ? program_.FindBlock(step.target) : block;
    if (owner == ir::kNoNode) return absl::NotFoundError("no such target");
    const std::vector<NodeId> above = program_.LoopsAbove(owner);
    std::vector<NodeId> loops;
    for (int position : step.loops) {
      if (position >= static_cast<int>(above.size())) return absl::NotFoundError("no such loop");
      loops.push_back(above[position]);
    }
    std::vector<Extent> sizes;
    for (int64_t number : step.numbers) sizes.push_back(ExtentTable::Constant(number));
    const absl::string_view name = step.primitive;
    HONE_RETURN_IF_ERROR(Apply(name, step, block, loops, sizes));
    Record(name, step, loops, static_cast<int>(above.size()));
    return absl::OkStatus();
  }

 private:
  absl::Status Apply(absl::string_view name, const Step& step, NodeId block,
                     const std::vector<NodeId>& loops, const std::vector<Extent>& sizes) {
    if (name == "split") return Split(program_, loops[0], sizes).status();
    if (name == "fuse") return Fuse(program_, loops).status();
    if (name == "reorder") return Reorder(program_, loops);
    if (name == "parallel") return Parallel(program_, loops[0]);
    if (name == "vectorize") return Vectorize(program_, loops[0]);
    if (name == "unroll") return Unroll(program_, loops[0]);
    if (name == "compute_at") return ComputeAt(program_, block, loops[0]);
    if (name == "reverse_compute_at") return ReverseComputeAt(program_, block, loops[0]);
    if (name == "compute_inline") return ComputeInline(program_, block);
    if (name == "decompose_reduction")
      return DecomposeReduction(program_, block, loops[0]).status();
    if (name == "transform_layout")
      return TransformLayout(program_, block, step.text, step.numbers);
    if (name == "register_tile") {
      return RegisterTile(program_, block, loops[0], loops[1], loops[2], sizes[0], sizes[1],
                          step.numbers[2], sizes[3])
          .status();
    }
    if (name == "thread_count") return ThreadCount(program_, loops[0], sizes[0]);
    if (name == "annotate") {
      return Annotate(program_, loops.empty() ? block : loops[0], step.text, step.numbers[0]);
    }
    if (name == "reverse_compute_inline") return ReverseComputeInline(program_, block);
    if (name == "rfactor") return Rfactor(program_, block, loops[0], step.numbers[0]).status();
    if (name == "add_unit_loop") {
      return AddUnitLoop(program_, loops.empty() ? block : loops[0]).status();
    }
    if (name == "loop_partition") return LoopPartition(program_, loops[0], sizes).status();
    if (name == "reorder_space") {
      return ReorderSpace(program_, loops[0], loops[1], step.text, sizes[0]).status();
    }
    if (name == "blockize") return Blockize(program_, loops[0]);
    if (name == "decompose_padding") return DecomposePadding(program_, block, loops[0]).status();
    if (name == "pad_einsum") {
      HONE_ASSIGN_OR_RETURN(const std::vector<NodeId> made, PadEinsum(program_, block, sizes));
      results_ = static_cast<int>(made.size());
      return absl::OkStatus();
    }
    if (name == "bind") return Bind(program_, loops[0], step.text);
    if (name == "storage_align") {
      return AlignStorage(
          program_, block,
          {static_cast<int>(step.numbers[0]), step.numbers[1], step.numbers[2]});
    }
    if (name == "double_buffer") return DoubleBuffer(program_, block);
    if (name == "software_pipeline") return SoftwarePipeline(program_, loops[0], step.numbers[0]);
    if (name == "async_copy") return AsyncCopy(program_, block);
    HONE_ASSIGN_OR_RETURN(const ir::Scope scope, ScopeFromName(step.scope));
    if (name == "set_scope") return SetScope(program_, block, scope);
    if (name == "cache_write") return CacheWrite(program_, block, scope).status();
    return CacheRead(program_, block, step.text, scope).status();
  }

  void Record(absl::string_view name, const Step& step, const std::vector<NodeId>& loops,
              int above) {
    const Operand block = builder_.Add("block", {Text(step.block)})[0];
    std::vector<Operand> operands;
    std::vector<Operand> registers;
    if (!loops.empty()) {
      const Operand owner =
          step.target.empty() ? block : builder_.Add("block", {Text(step.target)})[0];
      const std::vector<Operand> all = builder_.Add("loops", {owner}, {}, above);
      for (int position : step.loops) registers.push_back(all[position]);
    }
    if (step.sampling == "sample_compute_location") {
      registers = builder_.Add("sample_compute_location", {block});
      decisions_.push_back(step.loops[0]);
    }
    const absl::string_view signature = FindPrimitive(name)->operands;
    if (signature[0] == 'b' || (signature[0] == 'n' && loops.empty())) operands.push_back(block);
    operands.insert(operands.end(), registers.begin(), registers.end());
    if (!step.text.empty()) operands.push_back(Text(step.text));
    if (!step.scope.empty()) operands.push_back(Text(step.scope));
    int results = -1;
    if (name == "pad_einsum") results = results_;
    if (name == "split") results = static_cast<int>(step.numbers.size());
    if (name == "loop_partition") results = static_cast<int>(step.numbers.size()) + 1;
    if (step.sampling == "sample_perfect_tile" || step.sampling == "sample_tile") {
      const std::vector<Operand> drawn = builder_.Add(
          step.sampling, {registers[0]}, {{"parts", {static_cast<int64_t>(step.numbers.size())}}});
      operands.insert(operands.end(), drawn.begin(), drawn.end());
      decisions_.insert(decisions_.end(), step.numbers.begin(), step.numbers.end());
    } else if (step.sampling == "sample_categorical") {
      operands.push_back(Number(0));
      operands.push_back(
          builder_.Add("sample_categorical", {}, {{"candidates", {1, step.numbers[1], 3}}})[0]);
      decisions_.push_back(step.numbers[1]);
    } else {
      for (int64_t number : step.numbers) operands.push_back(Number(number));
    }
    builder_.Add(name, std::move(operands), {}, results);
  }

  ir::Program& program_;
  TraceBuilder& builder_;
  std::vector<int64_t>& decisions_;
  int results_ = 0;  // of the last pad_einsum
};

int64_t Pick(Rng& rng, int64_t bound) { return static_cast<int64_t>(rng.Below(bound)); }

// A layout map for a buffer: dimensions in a random order, one perhaps cut.
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

Step RandomStep(Rng& rng, const ir::Program& program) {
  const std::vector<NodeId> blocks = program.AllBlocks();
  const NodeId block = blocks[rng.Below(blocks.size())];
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
                                "pad_einsum",
                                "pad_einsum",
                                "pad_einsum",
                                "decompose_padding"};
  step.primitive = depth == 0
                       ? "compute_inline"
                       : kNames[rng.Below(std::size(kNames))];  // an init of a scalar has no loop
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
  } else if (name == "set_scope") {
    const char* const kScopes[] = {"global", "local", "shared", "fragment"};
    step.scope = kScopes[rng.Below(4)];
  } else if (name == "storage_align") {
    step.numbers = {Pick(rng, 2), 1 + Pick(rng, 8), 0};
    step.numbers[2] = Pick(rng, step.numbers[1]);
  } else if (name == "thread_count" || name == "annotate" || name == "bind" ||
             name == "loop_partition" || name == "rfactor" || name == "add_unit_loop" ||
             name == "software_pipeline" || name == "reorder_space") {
    // Loops that the primitive is for, more often than not.
    std::vector<int> fitting;
    for (int i = 0; i < depth; ++i) {
      const bool parallel = program.node(above[i]).loop == ir::LoopKind::kParallel;
      const bool reduces = program.IsReductionLoop(above[i], program.BlockOf(block));
      const bool fits = name == "thread_count" || name == "annotate" ? parallel
                        : name == "rfactor"                          ? reduces
                        : name == "bind"                             ? !reduces
                        : name == "software_pipeline"
                            ? program.node(above[i]).children.size() > 1
                            : true;
      if (fits) fitting.push_back(i);
    }
    const int position = fitting.empty() || rng.Below(8) == 0 ? any_loop()
                                                              : fitting[rng.Below(fitting.size())];
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

// Takes a step if it is legal.
void Try(RandomTrace& random, TraceBuilder& builder, const Step& step) {
  const Digest before = random.program.StructuralDigest();
  const absl::Status status = Taker(random.program, builder, random.decisions).Take(step);
  if (status.ok()) {
    random.steps.push_back(step);
    return;
  }
  ++random.refused;
  if (before != random.program.StructuralDigest() && random.refusals.ok()) {
    random.refusals = absl::InternalError(
        absl::StrCat(step.primitive, " changed the program and then refused: ", status.message()));
  }
}

}  // namespace

RandomTrace TakeSteps(std::shared_ptr<const ir::Workload> workload,
                      const std::vector<Step>& steps) {
  RandomTrace random{.workload = workload, .program = ir::Program::FromWorkload(workload)};
  TraceBuilder builder;
  for (const Step& step : steps) Try(random, builder, step);
  random.trace = std::move(builder).Build();
  return random;
}

RandomTrace MakeRandomTrace(std::shared_ptr<const ir::Workload> workload, uint64_t seed,
                            int attempts) {
  Rng rng(seed, 1);
  RandomTrace random{
      .seed = seed, .workload = workload, .program = ir::Program::FromWorkload(workload)};
  TraceBuilder builder;
  for (int i = 0; i < attempts; ++i) Try(random, builder, RandomStep(rng, random.program));
  random.trace = std::move(builder).Build();
  return random;
}

RandomTrace MakeRandomTrace(uint64_t seed, int attempts, int64_t max_extent) {
  Rng rng(seed, 0);
  auto workload = ir::ParseWorkload(RandomWorkloadText(rng, max_extent));
  return MakeRandomTrace(std::make_shared<const ir::Workload>(std::move(workload).value()), seed,
                         attempts);
}

RandomTrace Shrink(RandomTrace failing, absl::FunctionRef<bool(const RandomTrace&)> fails) {
  for (size_t i = failing.steps.size(); i-- > 0;) {
    std::vector<Step> fewer = failing.steps;
    fewer.erase(fewer.begin() + i);
    RandomTrace candidate = TakeSteps(failing.workload, fewer);
    candidate.seed = failing.seed;
    if (!fails(candidate)) continue;
    failing = std::move(candidate);
    i = failing.steps.size();  // once more over what is left
  }
  return failing;
}

std::string Describe(const RandomTrace& random) {
  return absl::StrCat("seed ", random.seed, "\n",
                      TraceFileText(*random.workload, random.trace, random.decisions), "program\n",
                      random.program.ToText());
}

}  // namespace hone::schedule
