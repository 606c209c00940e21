#include "worker/compile/lower/gpu/async_copies.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

namespace hone::lower {

using ir::BufferId;
using ir::Index;

namespace {

constexpr int64_t kSmallestCopy = 4, kLargestCopy = 16;  // bytes

// The loop that is being changed.
struct Pipeline {
  ir::AtomId var = ir::kNoAtom;
  int64_t stages = 0;  // 0: not known yet
  std::set<BufferId> buffers;
};

class AsyncCopies {
 public:
  explicit AsyncCopies(LoweredProgram& program) : p_(program) {}

  void Run() {
    for (const LoweredKernel& kernel : p_.kernels) {
      kernel_ = kernel.body;
      Visit(kernel.body);
    }
  }

 private:
  void Visit(StmtId id) {
    if (id == kNoStmt) return;
    for (const StmtId child : std::vector<StmtId>(p_.stmts[id].children)) Visit(child);
    if (p_.stmts[id].kind != Stmt::Kind::kSeq) return;
    for (const StmtId child : std::vector<StmtId>(p_.stmts[id].children)) {
      const Stmt& loop = p_.stmts[child];
      if (loop.kind == Stmt::Kind::kFor && loop.loop == ir::LoopKind::kSerial) Change(id, child);
    }
  }

  // Calls `visit` with each store under a statement and the lanes of the vectorized loop around it.
  template <typename Visitor>
  void VisitStores(StmtId id, const Visitor& visit, int64_t lanes = 1) {
    if (id == kNoStmt) return;
    const Stmt& stmt = p_.stmts[id];
    if (stmt.kind == Stmt::Kind::kStore) return visit(p_.stmts[id], lanes);
    if (stmt.kind == Stmt::Kind::kFor && stmt.loop == ir::LoopKind::kVectorized) {
      lanes = stmt.extent;
    }
    for (const StmtId child : stmt.children) VisitStores(child, visit, lanes);
  }

  bool IsCopy(const Stmt& store, int64_t lanes) const {
    const ir::Expr& value = p_.pool[store.values[0]];
    if (store.outputs.size() != 1 || store.reducer != ir::Reducer::kNone ||
        p_.storage[store.outputs[0]].kind != Storage::Kind::kShared || value.op != ir::Op::kLoad ||
        value.gathered >= 0) {
      return false;
    }
    const int64_t bytes = lanes * ir::DTypeBytes(p_.buffers[store.outputs[0]].dtype);
    return (p_.buffers[value.buffer].input ||
            p_.storage[value.buffer].kind == Storage::Kind::kPacked) &&
           bytes >= kSmallestCopy && bytes <= kLargestCopy;
  }

  // Returns c if the index has a term (var + c) % n with 0 ≤ c < n. Sets n if it is 0.
  std::optional<int64_t> StageOf(const Index& index, ir::AtomId var, int64_t& n) const {
    for (const ir::IndexTerm& term : index.terms()) {
      const ir::Atom& atom = p_.atoms[term.atom];
      if (atom.kind != ir::Atom::Kind::kMod || (n != 0 && atom.divisor != n)) continue;
      const Index offset = atom.argument - Index::Of(var);
      if (!offset.IsConstant() || offset.constant() < 0 || offset.constant() >= atom.divisor) {
        continue;
      }
      n = atom.divisor;
      return offset.constant();
    }
    return std::nullopt;
  }

  // Whether a statement only copies data that is used n − 1 iterations later. If so, adds the
  // buffers that it fills to the pipeline.
  bool CopiesAhead(StmtId id, Pipeline& pipeline) {
    bool ahead = !p_.HasBarrier(id), any = false;
    std::set<BufferId> buffers;
    int64_t stages = pipeline.stages;
    VisitStores(id, [&](const Stmt& store, int64_t lanes) {
      any = true;
      const std::optional<int64_t> stage = StageOf(store.indices[0], pipeline.var, stages);
      ahead = ahead && IsCopy(store, lanes) && stage == stages - 1;
      buffers.insert(store.outputs[0]);
    });
    if (!ahead || !any || stages < 2) return false;
    pipeline.stages = stages;
    pipeline.buffers.insert(buffers.begin(), buffers.end());
    return true;
  }

  // Whether a statement reads from the pipeline's buffers only the stage that was filled n − 1
  // iterations ago, and writes none of them. Sets `uses` if it reads one.
  bool ReadsCurrent(StmtId id, const Pipeline& pipeline, bool& uses) {
    bool right = true;
    VisitStores(id, [&](const Stmt& store, int64_t) {
      for (const BufferId output : store.outputs) right &= !pipeline.buffers.contains(output);
      for (const ir::ExprId value : store.values) {
        p_.pool.VisitLoads(value, [&](const ir::Expr& load) {
          if (!pipeline.buffers.contains(load.buffer)) return;
          uses = true;
          int64_t stages = pipeline.stages;
          right &= load.gathered < 0 &&
                   StageOf(p_.pool.IndicesOf(load)[0], pipeline.var, stages).value_or(-1) == 0;
        });
      }
    });
    return right;
  }

  void MarkCopies(StmtId id, const Pipeline& pipeline) {
    VisitStores(id, [&](Stmt& store, int64_t lanes) {
      if (IsCopy(store, lanes) && pipeline.buffers.contains(store.outputs[0])) {
        store.is_async = true;
      }
    });
  }

  // Appends the statements of a sequence, including those of nested sequences.
  void Flatten(StmtId seq, std::vector<StmtId>& children) const {
    for (const StmtId child : p_.stmts[seq].children) {
      const bool nested = child != kNoStmt && p_.stmts[child].kind == Stmt::Kind::kSeq;
      if (nested && !p_.stmts[child].cases) {
        Flatten(child, children);
      } else if (child != kNoStmt) {
        children.push_back(child);
      }
    }
  }

  void Change(StmtId parent, StmtId id) {
    const StmtId body = p_.stmts[id].children[0];
    if (p_.stmts[body].kind != Stmt::Kind::kSeq) return;
    std::vector<StmtId> children;
    Flatten(body, children);
    const auto barrier = std::ranges::find_if(
        children, [&](StmtId child) { return p_.stmts[child].kind == Stmt::Kind::kBarrier; });
    if (barrier == children.end()) return;
    Pipeline pipeline{.var = p_.stmts[id].var};
    auto last_copy = children.end();
    std::vector<StmtId> others;
    for (auto at = children.begin(); at != children.end(); ++at) {
      if (at > barrier && CopiesAhead(*at, pipeline)) {
        last_copy = at;
      } else {
        others.push_back(*at);
      }
    }
    if (last_copy == children.end()) return;
    for (const StmtId other : others) {
      bool uses = false;
      if (!ReadsCurrent(other, pipeline, uses)) return;
      if (uses && std::ranges::find(children, other) < barrier) return;
    }
    // This also marks the copies to these buffers before the loop.
    MarkCopies(kernel_, pipeline);
    children.insert(last_copy + 1, p_.Add({.kind = Stmt::Kind::kCommitCopies}));
    children.insert(
        std::ranges::find_if(
            children, [&](StmtId child) { return p_.stmts[child].kind == Stmt::Kind::kBarrier; }),
        p_.Add({.kind = Stmt::Kind::kWaitForCopies,
                .pending = static_cast<int>(pipeline.stages) - 2}));
    p_.stmts[body].children = std::move(children);
    BeginPipeline(parent, id, pipeline);
  }

  // Makes one group of the copies before the loop, followed by empty groups, so that each stage has
  // one.
  void BeginPipeline(StmtId parent, StmtId loop, const Pipeline& pipeline) {
    std::vector<StmtId> siblings = p_.stmts[parent].children;
    auto at = std::ranges::find(siblings, loop);
    for (int64_t stage = 1; stage < pipeline.stages; ++stage) {
      at = siblings.insert(at, p_.Add({.kind = Stmt::Kind::kCommitCopies}));
    }
    p_.stmts[parent].children = std::move(siblings);
  }

  LoweredProgram& p_;
  StmtId kernel_ = kNoStmt;
};

}  // namespace

bool HasAsyncCopies(const target::Target& target) {
  return target.kind == target::Kind::kCuda && target.HasFeature("sm_80");
}

void MakeCopiesAsync(LoweredProgram& program) { AsyncCopies(program).Run(); }

}  // namespace hone::lower
