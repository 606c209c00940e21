#include "tests/common/schedule/step.h"

#include "common/base/status_macros.h"
#include "common/schedule/primitive/annotate.h"
#include "common/schedule/primitive/data.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/primitive/padding.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/primitive/register_tile.h"
#include "common/schedule/primitive/tensorize.h"

namespace hone::schedule {

using ir::Extent;
using ir::ExtentTable;
using ir::NodeId;

namespace {

// Applies a step to a program and writes it as instructions of a trace.
class Taker {
 public:
  Taker(ir::Program& program, TraceBuilder& builder, std::vector<int64_t>& decisions)
      : program_(program), builder_(builder), decisions_(decisions) {}

  absl::Status Take(const Step& step) {
    const NodeId block = program_.FindBlock(step.block);
    if (block == ir::kNoNode) return absl::NotFoundError("no such block");
    if (step.sampling == "sample_compute_location" && step.target != FirstReader(program_, block)) {
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
    if (name == "reorder_by") return ReorderBy(program_, loops, step.text, step.numbers[0]);
    if (name == "loop_kind") return SetLoopKind(program_, loops[0], step.numbers[0]);
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
      return AlignStorage(program_, block,
                          {static_cast<int>(step.numbers[0]), step.numbers[1], step.numbers[2]});
    }
    if (name == "double_buffer") return DoubleBuffer(program_, block);
    if (name == "software_pipeline") return SoftwarePipeline(program_, loops[0], step.numbers[0]);
    if (name == "async_copy") return AsyncCopy(program_, block);
    if (name == "tensorize") return Tensorize(program_, loops[0], step.text);
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
    const Argument::Kind first = FindPrimitive(name)->ArgumentOf(0)->kind;
    if (first == Argument::Kind::kBlock || (first == Argument::Kind::kBlockOrLoop && loops.empty()))
      operands.push_back(block);
    operands.insert(operands.end(), registers.begin(), registers.end());
    if (!step.text.empty()) operands.push_back(Text(step.text));
    if (!step.scope.empty()) operands.push_back(Text(step.scope));
    int results = -1;
    if (name == "reorder_by") {  // the loops come last
      operands.insert(operands.begin(), {Number(step.numbers[0]), operands.back()});
      operands.pop_back();
    }
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
    } else if (name != "reorder_by") {
      for (int64_t number : step.numbers) operands.push_back(Number(number));
    }
    builder_.Add(name, std::move(operands), {}, results);
  }

  ir::Program& program_;
  TraceBuilder& builder_;
  std::vector<int64_t>& decisions_;
  int results_ = 0;  // of the last pad_einsum
};

}  // namespace

std::string FirstReader(const ir::Program& program, NodeId block) {
  const std::vector<NodeId> readers = program.ReadersOf(program.BlockOf(block).outputs[0]);
  return readers.empty() ? "" : program.BlockOf(readers[0]).name;
}

absl::Status TakeStep(const Step& step, ir::Program& program, TraceBuilder& builder,
                      std::vector<int64_t>& decisions) {
  return Taker(program, builder, decisions).Take(step);
}

}  // namespace hone::schedule
