#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/compile/lower/lower.h"
#include "worker/compile/lower/passes.h"

namespace hone::lower {

using ir::AtomId;
using ir::Index;

namespace {

class InitLowering {
 public:
  explicit InitLowering(LoweredProgram& program) : p_(program) {}

  void Run() {
    for (LoweredKernel& kernel : p_.kernels) kernel.body = Visit(kernel.body);
  }

 private:
  bool Reduces(const Stmt& store, AtomId var) const {
    return std::find(store.reduce_vars.begin(), store.reduce_vars.end(), var) !=
           store.reduce_vars.end();
  }
  bool OccursInPlace(const Stmt& store, AtomId var) const {
    return std::any_of(store.indices.begin(), store.indices.end(),
                       [&](const Index& index) { return p_.atoms.DependsOn(index, var); });
  }

  bool DiffersBetweenLanes(const ir::Condition& condition) const {
    return std::any_of(loops_.begin(), loops_.end(), [&](StmtId loop) {
      return p_.stmts[loop].loop == ir::LoopKind::kVectorized &&
             p_.atoms.DependsOn(condition.index, p_.stmts[loop].var);
    });
  }

  // Rewrites a subtree. Nests that must precede a loop are collected and inserted when that loop is
  // reached.
  StmtId Visit(StmtId id) {
    if (p_.stmts[id].kind == Stmt::Kind::kStore) return VisitStore(id);
    const bool loop = p_.stmts[id].kind == Stmt::Kind::kFor;
    if (loop) loops_.push_back(id);
    const std::vector<StmtId> children = p_.stmts[id].children;
    for (size_t c = 0; c < children.size(); ++c) {
      const StmtId child = Visit(children[c]);
      p_.stmts[id].children[c] = child;
    }
    if (!loop) return id;
    loops_.pop_back();
    std::vector<StmtId> before;
    std::erase_if(pending_, [&](const std::pair<StmtId, StmtId>& entry) {
      if (entry.first == id) before.push_back(entry.second);
      return entry.first == id;
    });
    if (before.empty()) return id;
    before.push_back(id);
    return p_.Add({.kind = Stmt::Kind::kSeq, .children = std::move(before)});
  }

  // The tile of sums that an instruction updates gets the neutral element as a whole, too.
  void InitTile(const Stmt& store, Stmt& init) {
    const ir::Intrinsic* const intrinsic = IntrinsicOf(store);
    if (intrinsic == nullptr || intrinsic->shape != ir::Intrinsic::Shape::kTile) return;
    ir::Set(init.annotations, ir::Annotation::Key::kIntrinsic, intrinsic->id);
    std::vector<std::pair<AtomId, Index>> renamed;
    for (const AtomId var : store.tensor_vars) {
      if (!OccursInPlace(store, var)) continue;
      const std::string name = absl::StrCat(p_.atoms[var].name, "_init");
      init.tensor_vars.push_back(p_.atoms.AddVar(name, p_.atoms[var].range.extent()));
      renamed.emplace_back(var, Index::Of(init.tensor_vars.back()));
    }
    for (Index& index : init.indices) index = p_.atoms.Substitute(index, renamed);
  }

  StmtId VisitStore(StmtId id) {
    if (!p_.stmts[id].has_init) return id;
    p_.stmts[id].has_init = false;
    // A sum of one term, such as a guarded load with zero padding, is stored directly. An
    // instruction sums several terms.
    if (p_.stmts[id].reducer == ir::Reducer::kSum && p_.stmts[id].reduce_vars.empty() &&
        p_.stmts[id].first.empty() && p_.stmts[id].tensor_vars.empty()) {
      p_.stmts[id].reducer = ir::Reducer::kNone;
      if (p_.stmts[id].guards.empty()) return id;
    }
    const Stmt store = p_.stmts[id];
    Stmt init{.kind = Stmt::Kind::kStore, .outputs = store.outputs, .indices = store.indices};
    for (size_t c = 0; c < store.outputs.size(); ++c) {
      const ir::DType dtype = p_.buffers[store.outputs[c]].dtype;
      init.values.push_back(
          p_.pool.Const(dtype, ir::ReducerIdentity(store.reducer, static_cast<int>(c), dtype)));
    }
    InitTile(store, init);
    size_t outermost = loops_.size();
    bool mixed = false;
    for (size_t l = loops_.size(); l-- > 0;) {
      const AtomId var = p_.stmts[loops_[l]].var;
      if (!Reduces(store, var)) continue;
      outermost = l;
      mixed |= OccursInPlace(store, var);
    }
    if (mixed || outermost == loops_.size()) {
      // The step is the first one if every binding is 0. That may hold for only some of the lanes.
      init.conditions = store.conditions;
      std::vector<ir::Condition> branches;
      for (const ir::Condition& condition : store.first) {
        (DiffersBetweenLanes(condition) ? init.conditions : branches).push_back(condition);
      }
      StmtId first = p_.Add(std::move(init));
      for (const ir::Condition& condition : branches) {
        first = p_.Add({.kind = Stmt::Kind::kIf, .children = {first}, .condition = condition});
      }
      return p_.Add({.kind = Stmt::Kind::kSeq, .children = {first, id}});
    }
    std::vector<std::pair<AtomId, Index>> renamed;
    std::vector<StmtId> copies;
    for (size_t l = outermost; l < loops_.size(); ++l) {
      const AtomId var = p_.stmts[loops_[l]].var;
      if (Reduces(store, var) || !OccursInPlace(store, var)) continue;
      copies.push_back(p_.AddCopy(loops_[l], "_init", renamed));
      p_.stmts[copies.back()].annotations = p_.stmts[loops_[l]].annotations;  // such as threads
    }
    const auto rename = [&](const Index& index) { return p_.atoms.Substitute(index, renamed); };
    for (Index& index : init.indices) index = rename(index);
    // The conditions at the first step, where every reduction variable is 0.
    const Index zero(0);
    for (const ir::Condition& condition : store.conditions) {
      const Index first = p_.atoms.Substitute(
          condition.index, [&](AtomId var) { return Reduces(store, var) ? &zero : nullptr; });
      const ir::Range range = p_.atoms.RangeOf(first);
      if (range.min >= 0 && range.max < condition.extent) continue;
      init.conditions.push_back({rename(first), condition.extent});
    }
    pending_.emplace_back(loops_[outermost], p_.Nest(copies, p_.Add(std::move(init))));
    return id;
  }

  LoweredProgram& p_;
  std::vector<StmtId> loops_;
  std::vector<std::pair<StmtId, StmtId>> pending_;  // loop, nest to run before it
};

}  // namespace

absl::Status LowerInits(LoweredProgram& program) {
  InitLowering(program).Run();
  return absl::OkStatus();
}

}  // namespace hone::lower
