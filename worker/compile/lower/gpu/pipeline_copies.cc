#include <algorithm>

#include "common/ir/program.h"
#include "worker/compile/lower/buffer_uses.h"
#include "worker/compile/lower/gpu/gpu_passes.h"

namespace hone::lower {

using ir::Annotation;
using ir::BufferId;
using ir::Index;
using ir::NodeId;

namespace {

class Pipeliner {
 public:
  explicit Pipeliner(ir::Program& program) : p_(program) {}

  void Run() {
    for (const NodeId kernel : std::vector<NodeId>(p_.kernels)) Visit(kernel);
  }

 private:
  void Visit(NodeId id) {
    const auto children = p_.node(id).children;
    for (const NodeId child : children) Visit(child);
    if (p_.IsLoop(id) && p_.node(id).loop == ir::LoopKind::kSerial) Pipeline(id);
  }

  // The number of buffers for each copy in a loop's nest; 1 if it is not pipelined.
  int64_t StagesOf(NodeId loop, NodeId nest) const {
    int64_t stages = ir::ValueOf(p_.node(loop).annotations, Annotation::Key::kSoftwarePipeline, 1);
    for (const NodeId block : p_.BlocksUnder(nest)) {
      if (ir::ValueOf(p_.node(block).annotations, Annotation::Key::kDoubleBuffer, 0) != 0) {
        stages = std::max<int64_t>(stages, 2);
      }
    }
    return std::min(stages, p_.node(loop).extent.value);
  }

  // Whether all blocks of a nest in the loop copy data that no block in the loop computes, to
  // buffers that are used only in the loop.
  bool CopiesAhead(NodeId loop, NodeId nest) const {
    const std::vector<NodeId> blocks = p_.BlocksUnder(nest);
    return !blocks.empty() && std::ranges::all_of(blocks, [&](NodeId id) {
      const ir::Block& block = p_.BlockOf(id);
      if (block.reducer != ir::Reducer::kNone || block.outputs.size() != 1) return false;
      const ir::Buffer& buffer = p_.buffers[block.outputs[0]];
      const std::vector<NodeId> users = UsersOf(p_, {block.outputs[0]});
      if (buffer.input || buffer.output || p_.WritersOf(block.outputs[0]).size() != 1 ||
          users.size() < 2 || CommonAncestor(p_, users) != loop) {
        return false;
      }
      return std::ranges::none_of(p_.BlocksUnder(loop), [&](NodeId other) {
        return std::ranges::any_of(p_.BlockOf(other).outputs,
                                   [&](BufferId written) { return p_.Reads(block, written); });
      });
    });
  }

  void Pipeline(NodeId loop) {
    const auto nests = p_.node(loop).children;
    for (const NodeId nest : nests) {
      const int64_t stages = StagesOf(loop, nest);
      if (stages > 1 && CopiesAhead(loop, nest)) CopyAhead(loop, nest, stages);
    }
  }

  void CopyAhead(NodeId loop, NodeId nest, int64_t stages) {
    const ir::AtomId var = p_.node(loop).var;
    const int64_t ahead = stages - 1;
    for (const NodeId block : p_.BlocksUnder(nest)) {
      AddStages(p_.BlockOf(block).outputs[0], var, stages);
    }
    const NodeId parent = p_.node(loop).parent;
    for (int64_t stage = 0; stage < ahead; ++stage) {
      ir::Replacements replaced = {{var, Index(stage)}};
      const NodeId first = ir::Clone(p_, nest, "", replaced);
      p_.Insert(parent, p_.PositionInParent(loop), first);
    }
    p_.SubstituteUnder(nest, var, Index::Of(var) + ahead);
    for (const NodeId block : p_.BlocksUnder(nest)) {
      p_.BlockOf(block).predicates.push_back({Index::Of(var) + ahead, p_.node(loop).extent.value});
    }
  }

  // Adds a dimension for the stages to a buffer. The iterations of `var` use the stages in turn.
  void AddStages(BufferId buffer, ir::AtomId var, int64_t stages) {
    const auto is_buffer = [&](BufferId other) { return other == buffer; };
    for (const NodeId user : UsersOf(p_, {buffer})) {
      const ir::AtomId stage = p_.atoms.AddVar("stage", stages);
      const Index turn = p_.atoms.Mod(Index::Of(var), stages);
      p_.BlockOf(user).iters.push_back({stage, stages, false, turn});
      RewriteIndices(p_, user, is_buffer, [&](ir::Block&, const ir::IndexList& indices) {
        ir::IndexList result = {Index::Of(stage)};
        result.insert(result.end(), indices.begin(), indices.end());
        return result;
      });
    }
    ir::Buffer& staged = p_.buffers[buffer];
    staged.shape.insert(staged.shape.begin(), stages);
    for (ir::StorageAlign& align : staged.aligns) ++align.axis;
  }

  ir::Program& p_;
};

}  // namespace

void PipelineCopies(ir::Program& program) { Pipeliner(program).Run(); }

}  // namespace hone::lower
