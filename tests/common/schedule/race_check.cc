#include "tests/common/schedule/race_check.h"

#include <algorithm>
#include <unordered_map>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/arithmetic.h"

namespace hone::schedule {
namespace {

using ir::NodeId;

class Walker {
 public:
  Walker(const ir::Program& program, NodeId loop)
      : program_(program),
        loop_(loop),
        vars_(program.atoms.size(), 0),
        touched_(program.buffers.size()) {
    private_.assign(program.buffers.size(), program.node(loop).loop != ir::LoopKind::kVectorized);
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      if (program.buffers[b].input || program.buffers[b].output) private_[b] = false;
      for (const auto& users :
           {program.WritersOf(static_cast<int>(b)), program.ReadersOf(static_cast<int>(b))}) {
        for (NodeId user : users) private_[b] = private_[b] && program.IsUnder(user, loop);
      }
    }
    const ir::Node& node = program.node(loop);
    combines_ = node.loop == ir::LoopKind::kVectorized && node.children.size() == 1 &&
                program.IsReductionLoop(loop, program.BlockOf(node.children[0]));
  }

  absl::Status Run() {
    for (NodeId kernel : program_.kernels) HONE_RETURN_IF_ERROR(Visit(kernel));
    return absl::OkStatus();
  }

 private:
  struct Touch {
    int64_t instance = -1;  // of the loop
    int64_t iteration = -1;
  };

  absl::Status Visit(NodeId id) {
    const ir::Node& node = program_.node(id);
    if (node.kind == ir::Node::Kind::kBlock) return Block(program_.BlockOf(id));
    const bool is_loop = node.kind == ir::Node::Kind::kLoop;
    if (id == loop_) {
      ++instance_;
      inside_ = true;
    }
    for (int64_t i = 0; i < (is_loop ? node.extent.value : 1); ++i) {
      if (is_loop) vars_[node.var] = i;
      if (id == loop_) iteration_ = i;
      for (NodeId child : node.children) HONE_RETURN_IF_ERROR(Visit(child));
    }
    if (id == loop_) inside_ = false;
    return absl::OkStatus();
  }

  bool Holds(const std::vector<ir::Condition>& conditions) const {
    return std::all_of(conditions.begin(), conditions.end(), [&](const ir::Condition& c) {
      const int64_t value = program_.atoms.Evaluate(c.index, vars_);
      return value >= 0 && value < c.extent;
    });
  }

  int64_t Offset(ir::BufferId buffer, const ir::IndexList& indices) const {
    int64_t offset = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      offset =
          offset * program_.buffers[buffer].shape[d] + program_.atoms.Evaluate(indices[d], vars_);
    }
    return offset;
  }

  absl::Status Fail(const ir::Block& block, ir::BufferId buffer, absl::string_view what) const {
    return absl::InternalError(
        absl::StrCat("iterations of ", program_.atoms[program_.node(loop_).var].name,
                     " meet: block ", block.name, " ", what, " ", program_.buffers[buffer].name));
  }

  // Visits the loads that are evaluated: only one operand of a guarded value.
  void VisitReads(ir::ExprId id, absl::FunctionRef<void(const ir::Expr&)> visit) const {
    if (id == ir::kNoExpr) return;
    const ir::Expr& expr = program_.pool[id];
    if (expr.op == ir::Op::kWhere) {
      const bool holds = ir::Holds(program_.atoms, program_.pool.IndicesOf(expr), vars_);
      return VisitReads(holds ? expr.a : expr.b, visit);
    }
    if (expr.op == ir::Op::kLoad) visit(expr);
    for (const ir::ExprId operand : {expr.a, expr.b, expr.c}) VisitReads(operand, visit);
  }

  absl::Status Block(const ir::Block& block) {
    if (!inside_ || !Holds(block.predicates)) return absl::OkStatus();
    bool first = true;
    for (const ir::BlockIter& iter : block.iters) {
      vars_[iter.var] = program_.atoms.Evaluate(iter.binding, vars_);
      first &= !iter.reduce || vars_[iter.var] == 0;
    }
    const bool updates = Holds(block.guards);
    const auto touch = [&](ir::BufferId buffer, const ir::IndexList& indices, bool read,
                           bool write) -> absl::Status {
      Touch& last = touched_[buffer][Offset(buffer, indices)];
      const bool same = last.instance == instance_ && last.iteration == iteration_;
      if (private_[buffer] && read && !same)
        return Fail(block, buffer, "reads a value of another iteration of private");
      if (!private_[buffer] && last.instance == instance_ && last.iteration != iteration_) {
        return Fail(block, buffer,
                    write ? "writes the same element of" : "reads what another iteration wrote to");
      }
      if (write) last = {instance_, iteration_};
      return absl::OkStatus();
    };
    absl::Status status = absl::OkStatus();
    if (updates) {
      for (ir::ExprId value : block.values) {
        VisitReads(value, [&](const ir::Expr& load) {
          if (status.ok() && !program_.buffers[load.buffer].input)
            status = touch(load.buffer, program_.pool.IndicesOf(load), true, false);
        });
      }
    }
    HONE_RETURN_IF_ERROR(status);
    const bool init = block.has_init && first;
    if (!init && !updates) return absl::OkStatus();
    // Each thread accumulates its own partial result.
    if (program_.node(loop_).loop == ir::LoopKind::kBound && program_.IsReductionLoop(loop_, block))
      return absl::OkStatus();
    for (ir::BufferId output : block.outputs) {
      if (combines_) {
        const Touch element{instance_, Offset(output, block.indices)};
        if (element_.instance == instance_ && element_.iteration != element.iteration)
          return Fail(block, output, "combines lanes of different elements of");
        element_ = element;
        continue;
      }
      HONE_RETURN_IF_ERROR(
          touch(output, block.indices, block.reducer != ir::Reducer::kNone && !init, true));
    }
    return absl::OkStatus();
  }

  const ir::Program& program_;
  NodeId loop_;
  std::vector<int64_t> vars_;
  std::vector<std::unordered_map<int64_t, Touch>> touched_;
  std::vector<bool> private_;
  int64_t instance_ = -1, iteration_ = -1;
  bool combines_ = false;  // whether the loop's lanes must belong to one element
  Touch element_;          // that element's offset
  bool inside_ = false;
};

}  // namespace

absl::Status CheckNoRaces(const ir::Program& program) {
  absl::Status status = absl::OkStatus();
  const auto visit = [&](auto&& self, NodeId id) -> void {
    const ir::Node& node = program.node(id);
    const bool concurrent =
        node.kind == ir::Node::Kind::kLoop &&
        (node.loop == ir::LoopKind::kParallel || node.loop == ir::LoopKind::kVectorized ||
         node.loop == ir::LoopKind::kBound);
    if (concurrent && status.ok()) status = Walker(program, id).Run();
    for (NodeId child : node.children) self(self, child);
  };
  for (NodeId kernel : program.kernels) visit(visit, kernel);
  return status;
}

}  // namespace hone::schedule
