#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ir/cases.h"
#include "common/ir/intrinsic.h"
#include "worker/compile/lower/gpu/thread_nest.h"
#include "worker/compile/lower/passes.h"

namespace hone::lower {

using ir::Index;
using ir::NodeId;

namespace {

class Builder {
 public:
  Builder(const ir::Program& program, target::Kind kind) : program_(program) {
    lowered_.kind = kind;
    lowered_.atoms = program_.atoms;
    lowered_.pool = program_.pool;
    lowered_.buffers = program_.buffers;
    // On CPUs, PromoteAccumulators chooses the fragments; the schedule's own fragment scope is
    // plain memory.
    for (ir::Buffer& buffer : lowered_.buffers) {
      if (buffer.scope == ir::Scope::kFragment) buffer.scope = ir::Scope::kLocal;
    }
  }

  LoweredProgram Run() {
    for (NodeId kernel : program_.kernels) {
      LoweredKernel& lowered =
          lowered_.kernels.emplace_back(program_.node(kernel).name, Children(kernel));
      if (lowered_.IsForGpu()) DescribeLaunch(kernel, lowered);
    }
    return std::move(lowered_);
  }

 private:
  StmtId Children(NodeId id) {
    Stmt seq;
    for (NodeId child : program_.node(id).children) {
      const StmtId stmt = Build(child);
      if (stmt != kNoStmt) seq.children.push_back(stmt);
    }
    if (seq.children.size() == 1) return seq.children[0];
    return lowered_.Add(std::move(seq));
  }

  StmtId Build(NodeId id) {
    const ir::Node& node = program_.node(id);
    switch (node.kind) {
      case ir::Node::Kind::kLoop: {
        if (ir::ValueOf(node.annotations, ir::Annotation::Key::kIntrinsic, -1) >= 0)
          return Tensor(id);
        // A loop of one iteration is replaced by its body, except a parallel loop: it is where
        // threads start.
        if (node.extent.value == 1 && node.loop != ir::LoopKind::kParallel) return Children(id);
        // A nest of one block is repeated for each of its cases, so that the conditions become
        // bounds of loops.
        if (node.loop != ir::LoopKind::kParallel && node.loop != ir::LoopKind::kBound &&
            case_ == nullptr) {
          const NodeId block = OnlyBlockUnder(id);
          if (block != ir::kNoNode &&
              ir::HasGuardedValue(lowered_.pool, program_.BlockOf(block).values)) {
            const std::vector<ir::Case> cases = CasesOf(program_.BlockOf(block));
            if (cases.size() > 1) return EachCase(id, cases);
          }
        }
        Stmt loop{.kind = Stmt::Kind::kFor,
                  .loop = node.loop,
                  .axis = node.axis,
                  .var = node.var,
                  .extent = node.extent.value,
                  .annotations = node.annotations};
        if (node.loop == ir::LoopKind::kTensor) loop.loop = ir::LoopKind::kSerial;
        loop.children = {Children(id)};
        return lowered_.Add(std::move(loop));
      }
      case ir::Node::Kind::kBlock: {
        const ir::Block& block = program_.BlockOf(id);
        if (case_ != nullptr) return Store(block, *case_, node.annotations);
        const std::vector<ir::Case> cases = CasesOf(block);
        if (cases.size() > 1) return EachCase(id, cases);
        return Store(block, cases[0], node.annotations);
      }
      case ir::Node::Kind::kBarrier:
        return lowered_.Add({.kind = Stmt::Kind::kBarrier});
      case ir::Node::Kind::kKernel:
      case ir::Node::Kind::kRemoved:
        break;
    }
    return kNoStmt;
  }

  void DescribeLaunch(NodeId kernel, LoweredKernel& launch) const {
    const std::vector<NodeId> blocks = program_.BlocksUnder(kernel);
    launch.prepack =
        !blocks.empty() && lowered_.buffers[program_.BlockOf(blocks[0]).outputs[0]].constant;
    for (StmtId at = launch.body; lowered_.stmts[at].kind == Stmt::Kind::kFor &&
                                  lowered_.stmts[at].loop == ir::LoopKind::kBound;
         at = lowered_.stmts[at].children[0]) {
      const Stmt& loop = lowered_.stmts[at];
      (IsBlockAxis(loop.axis) ? launch.grid : launch.block)[Dimension(loop.axis)] = loop.extent;
    }
  }

  // The block if it is the only one under this node and all nodes between are loops.
  NodeId OnlyBlockUnder(NodeId id) const {
    while (program_.IsLoop(id) && program_.node(id).children.size() == 1) {
      id = program_.node(id).children[0];
    }
    return program_.IsBlock(id) ? id : ir::kNoNode;
  }

  // Returns at least one case. The limit is not exceeded, because primitives respect it.
  std::vector<ir::Case> CasesOf(const ir::Block& block) {
    return *ir::CasesOf(lowered_.pool, lowered_.atoms, block.values);
  }

  StmtId EachCase(NodeId id, const std::vector<ir::Case>& cases) {
    Stmt seq{.cases = true};
    for (const ir::Case& at : cases) {
      case_ = &at;
      seq.children.push_back(Build(id));
    }
    case_ = nullptr;
    return lowered_.Add(std::move(seq));
  }

  // A nest that an instruction computes becomes one store: over lanes (kDot) or over a whole tile
  // (kTile).
  StmtId Tensor(NodeId id) {
    const int64_t number =
        ir::ValueOf(program_.node(id).annotations, ir::Annotation::Key::kIntrinsic, -1);
    const ir::Intrinsic& intrinsic = *ir::FindIntrinsic(number);
    std::vector<NodeId> loops;
    NodeId at = id;
    for (; program_.IsLoop(at); at = program_.node(at).children[0]) loops.push_back(at);
    ir::Annotations annotations = program_.node(at).annotations;
    ir::Set(annotations, ir::Annotation::Key::kIntrinsic, number);
    const ir::Block& block = program_.BlockOf(at);
    const StmtId store =
        Store(block, {.values = {block.values.begin(), block.values.end()}}, annotations);
    std::vector<NodeId> lane_loops;
    if (intrinsic.shape == ir::Intrinsic::Shape::kDot) {
      const size_t spatial = ir::DescriptionOf(intrinsic).stages.back().spatial.size();
      lane_loops.assign(loops.begin(), loops.begin() + static_cast<ptrdiff_t>(spatial));
      loops.erase(loops.begin(), loops.begin() + static_cast<ptrdiff_t>(spatial));
    }
    std::vector<ir::AtomId> vars;
    for (NodeId loop : loops) vars.push_back(program_.node(loop).var);
    Stmt& stmt = lowered_.stmts[store];
    stmt.tensor_vars = vars;
    const Index zero(0);
    for (ir::Condition& first : stmt.first) {
      first.index = lowered_.atoms.Substitute(first.index, [&](ir::AtomId var) {
        return std::find(vars.begin(), vars.end(), var) != vars.end() ? &zero : nullptr;
      });
    }
    std::erase_if(stmt.first, [](const ir::Condition& first) { return first.index.IsConstant(); });
    std::erase_if(stmt.reduce_vars, [&](ir::AtomId var) {
      return std::find(vars.begin(), vars.end(), var) != vars.end();
    });
    return lane_loops.empty() ? store : OverLanes(store, lane_loops);
  }

  // Puts a store into a vectorized loop, whose iterations are those of some nested loops.
  StmtId OverLanes(StmtId store, absl::Span<const NodeId> loops) {
    Stmt lanes{.kind = Stmt::Kind::kFor,
               .children = {store},
               .loop = ir::LoopKind::kVectorized,
               .var = program_.node(loops[0]).var};
    for (NodeId loop : loops) lanes.extent *= program_.node(loop).extent.value;
    if (loops.size() == 1) return lowered_.Add(std::move(lanes));
    lanes.var =
        lowered_.atoms.AddVar(absl::StrCat(lowered_.atoms[lanes.var].name, "_lane"), lanes.extent);
    std::vector<std::pair<ir::AtomId, Index>> replaced;
    int64_t inside = lanes.extent;
    for (NodeId loop : loops) {
      const int64_t extent = program_.node(loop).extent.value;
      inside /= extent;
      replaced.emplace_back(
          program_.node(loop).var,
          lowered_.atoms.Mod(lowered_.atoms.FloorDiv(Index::Of(lanes.var), inside), extent));
    }
    Stmt& stmt = lowered_.stmts[store];
    const auto over_lanes = [&](const Index& index) {
      return lowered_.atoms.Substitute(index, replaced);
    };
    for (Index& index : stmt.indices) index = over_lanes(index);
    for (ir::ExprId& value : stmt.values) {
      value = lowered_.pool.Rewrite(value, [](const ir::Expr&) { return ir::kNoExpr; }, over_lanes);
    }
    return lowered_.Add(std::move(lanes));
  }

  // Rewrites an index over loop variables. Variables of loops with one iteration are 0.
  Index OverLoops(const ir::Block& block, const Index& index) {
    const Index over = lowered_.atoms.Substitute(index, [&](ir::AtomId var) -> const Index* {
      for (const ir::BlockIter& iter : block.iters) {
        if (iter.var == var) return &iter.binding;
      }
      return nullptr;
    });
    static const Index* const zero = new Index(0);
    return lowered_.atoms.Substitute(over, [&](ir::AtomId var) {
      return lowered_.atoms[var].range.extent() == 1 ? zero : nullptr;
    });
  }

  StmtId Store(const ir::Block& block, const ir::Case& at, const ir::Annotations& annotations) {
    Stmt store{.kind = Stmt::Kind::kStore,
               .annotations = annotations,
               .outputs = block.outputs,
               .reducer = block.reducer,
               .lane_xor = block.lane_xor,
               .has_init = block.has_init};
    for (const Index& index : block.indices) store.indices.push_back(OverLoops(block, index));
    for (ir::ExprId value : at.values) {
      store.values.push_back(lowered_.pool.Rewrite(
          value, [](const ir::Expr&) { return ir::kNoExpr; },
          [&](const Index& index) { return OverLoops(block, index); }));
    }
    for (const ir::Condition& predicate : block.predicates)
      AddCondition(store.conditions, {OverLoops(block, predicate.index), predicate.extent});
    for (const ir::Condition& guard : block.guards)
      AddCondition(store.guards, {OverLoops(block, guard.index), guard.extent});
    for (const ir::Condition& condition : at.conditions)
      AddCondition(store.guards, {OverLoops(block, condition.index), condition.extent});
    for (const ir::BlockIter& iter : block.iters) {
      if (!iter.reduce) continue;
      const Index binding = OverLoops(block, iter.binding);
      if (!binding.IsConstant()) store.first.push_back({binding, 1});
      lowered_.atoms.VisitVars(binding, [&](ir::AtomId var) { store.reduce_vars.push_back(var); });
    }
    return lowered_.Add(std::move(store));
  }

  void AddCondition(std::vector<ir::Condition>& conditions, ir::Condition condition) {
    const ir::Range range = lowered_.atoms.RangeOf(condition.index);
    if (range.min >= 0 && range.max < condition.extent) return;
    for (const ir::Condition& known : conditions) {
      if (known == condition) return;
    }
    conditions.push_back(std::move(condition));
  }

  const ir::Program& program_;
  LoweredProgram lowered_;
  const ir::Case* case_ = nullptr;  // of the block that is being built
};

}  // namespace

LoweredProgram BuildTree(const ir::Program& program, target::Kind kind) {
  return Builder(program, kind).Run();
}

}  // namespace hone::lower
