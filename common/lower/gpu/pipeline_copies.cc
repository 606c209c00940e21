#include <algorithm>

#include "common/lower/buffer_uses.h"
#include "common/lower/gpu/gpu_passes.h"

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

  // Whether all blocks of a nest in the loop copy what nothing in the loop computes, to buffers
  // that are used in the loop only.
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
      Replacements replaced = {{var, Index(stage)}};
      const NodeId first = Clone(nest, replaced);
      p_.Insert(parent, p_.PositionInParent(loop), first);
    }
    p_.SubstituteUnder(nest, var, Index::Of(var) + ahead);
    for (const NodeId block : p_.BlocksUnder(nest)) {
      p_.BlockOf(block).predicates.push_back({Index::Of(var) + ahead, p_.node(loop).extent.value});
    }
  }

  // Gives a buffer a dimension for the stages, which iteration `var` uses in turns.
  void AddStages(BufferId buffer, ir::AtomId var, int64_t stages) {
    for (const NodeId user : UsersOf(p_, {buffer})) {
      ir::Block block = p_.BlockOf(user);
      const ir::AtomId stage = p_.atoms.AddVar("stage", stages);
      block.iters.push_back({stage, stages, false, p_.atoms.Mod(Index::Of(var), stages)});
      const auto staged = [&](const ir::IndexList& indices) {
        ir::IndexList result = {Index::Of(stage)};
        result.insert(result.end(), indices.begin(), indices.end());
        return result;
      };
      if (block.outputs[0] == buffer) block.indices = staged(block.indices);
      for (ir::ExprId& value : block.values) {
        value = p_.pool.Rewrite(
            value,
            [&](const ir::Expr& load) {
              if (load.buffer != buffer) return ir::kNoExpr;
              const ir::IndexList indices = p_.pool.IndicesOf(load);
              return p_.pool.Load(buffer, load.dtype, staged(indices));
            },
            [](const Index& index) { return index; });
      }
      p_.BlockOf(user) = std::move(block);
    }
    ir::Buffer& staged = p_.buffers[buffer];
    staged.shape.insert(staged.shape.begin(), stages);
    for (ir::StorageAlign& align : staged.aligns) ++align.axis;
  }

  using Replacements = std::vector<std::pair<ir::AtomId, Index>>;

  // Copies a nest with loop variables of its own.
  NodeId Clone(NodeId id, Replacements& replaced) {
    const ir::Node original = p_.node(id);
    const auto replacement = [&](ir::AtomId var) -> const Index* {
      for (const auto& [from, to] : replaced) {
        if (from == var) return &to;
      }
      return nullptr;
    };
    if (original.kind == ir::Node::Kind::kBlock) {
      ir::Block block = p_.BlockOf(id);
      for (ir::BlockIter& iter : block.iters) {
        iter.binding = p_.atoms.Substitute(iter.binding, replacement);
      }
      for (ir::Condition& predicate : block.predicates) {
        predicate.index = p_.atoms.Substitute(predicate.index, replacement);
      }
      block.name = p_.FreshBlockName(block.name);
      const NodeId copy = p_.NewBlock(std::move(block));
      p_.node(copy).annotations = original.annotations;
      return copy;
    }
    const NodeId copy = p_.NewLoop(p_.atoms[original.var].name, original.extent);
    p_.node(copy).loop = original.loop;
    p_.node(copy).axis = original.axis;
    p_.node(copy).annotations = original.annotations;
    replaced.emplace_back(original.var, Index::Of(p_.node(copy).var));
    for (const NodeId child : original.children) p_.Append(copy, Clone(child, replaced));
    return copy;
  }

  ir::Program& p_;
};

}  // namespace

void PipelineCopies(ir::Program& program) { Pipeliner(program).Run(); }

}  // namespace hone::lower
