#include <algorithm>
#include <numeric>
#include <optional>

#include "common/lower/passes.h"

namespace hone::lower {

using ir::AtomId;
using ir::Condition;
using ir::Index;

namespace {

// Limit on the number of values of the runtime part that get a separate case. Beyond it, conditions
// stay with the stores.
constexpr int kMaxPartialCases = 4;
// Limit on copies of one body, over nested cases.
constexpr int kMaxCopies = 16;

class Narrower {
 public:
  explicit Narrower(LoweredProgram& program)
      : p_(program), kind_(program.atoms.size(), Var::kUnknown) {
    for (const Stmt& stmt : p_.stmts) {
      if (stmt.kind != Stmt::Kind::kFor) continue;
      kind_[stmt.var] = LoweredProgram::IsStatic(stmt.loop) ? Var::kStatic : Var::kRuntime;
    }
  }

  void Run() {
    for (LoweredKernel& kernel : p_.kernels) kernel.body = Narrow(kernel.body, 1);
  }

 private:
  enum class Var : uint8_t { kUnknown, kStatic, kRuntime };
  enum class Mode { kHolds, kFails, kStatic };

  // Conditions that one decision settles: they have the same runtime part, and static parts with
  // the same range. (An accumulator's load, update and store each have their own static loops.)
  struct Class {
    Index runtime;
    ir::Range fixed;
    int64_t extent = 0;
    friend bool operator==(const Class&, const Class&) = default;
  };
  struct Parts {
    Index runtime, fixed;
    bool mixed = false;  // a floordiv or mod mixes both parts
  };

  Parts PartsOf(const Index& index) const {
    Parts parts;
    parts.runtime += index.constant();
    for (const ir::IndexTerm& term : index.terms()) {
      bool any_static = false, any_runtime = false;
      p_.atoms.VisitVars(Index::Of(term.atom), [&](AtomId var) {
        (KindOf(var) == Var::kStatic ? any_static : any_runtime) = true;
      });
      parts.mixed |= any_static && any_runtime;
      (any_static ? parts.fixed : parts.runtime) += Index::Of(term.atom, term.coeff);
    }
    return parts;
  }
  Class ClassOf(const Condition& condition) const {
    const Parts parts = PartsOf(condition.index);
    return {parts.runtime, p_.atoms.RangeOf(parts.fixed), condition.extent};
  }

  Var KindOf(AtomId var) const {
    return var < static_cast<AtomId>(kind_.size()) ? kind_[var] : Var::kRuntime;
  }

  // Returns kNoStmt if nothing is left.
  StmtId Narrow(StmtId id, int copies) {
    if (id == kNoStmt) return kNoStmt;
    const Stmt stmt = p_.stmts[id];
    if (stmt.kind == Stmt::Kind::kStore || stmt.kind == Stmt::Kind::kBarrier) return id;
    if (stmt.cases || (stmt.kind == Stmt::Kind::kSeq && p_.HasBarrier(id))) {
      return NarrowEach(id, copies);
    }
    if (stmt.kind == Stmt::Kind::kFor && !LoweredProgram::IsStatic(stmt.loop))
      return NarrowLoop(id, copies);
    std::vector<StmtId> children;
    for (StmtId child : stmt.children) {
      const StmtId narrowed = Narrow(child, copies);
      if (narrowed != kNoStmt || stmt.kind == Stmt::Kind::kIf) children.push_back(narrowed);
    }
    const bool is_empty = std::all_of(children.begin(), children.end(),
                                      [](StmtId child) { return child == kNoStmt; });
    if (is_empty) return kNoStmt;
    p_.stmts[id].children = std::move(children);
    return id;
  }

  // Decides the conditions of each child separately. A common decision for cases would also copy
  // cases without the condition, and the copies would double with every condition. A common
  // decision between barriers would put a barrier into a branch that only some threads take.
  StmtId NarrowEach(StmtId id, int copies) {
    std::vector<StmtId> children;
    for (StmtId child : std::vector<StmtId>(p_.stmts[id].children)) {
      int copies_of_child = copies;
      child = NarrowWhole(child, copies_of_child);
      if (child != kNoStmt) children.push_back(child);
    }
    if (children.empty()) return kNoStmt;
    p_.stmts[id].children = std::move(children);
    return id;
  }

  // Decides all conditions that can be decided before the statement runs, then narrows it.
  StmtId NarrowWhole(StmtId id, int& copies) {
    if (!p_.HasBarrier(id)) {
      for (const Class& decided : ReadyConditions(id, std::nullopt))
        id = Decide(nullptr, id, decided, copies);
    }
    return Narrow(id, copies);
  }

  // Returns the conditions in the body that can be decided now: those that contain `var` (or any
  // runtime variable if it is not given) and otherwise only static variables and variables of
  // enclosing loops. Conditions of cases are left out.
  std::vector<Class> ReadyConditions(StmtId body, std::optional<AtomId> var) {
    std::vector<Class> ready;
    VisitStores(body, /*cases=*/false, [&](const Stmt& store) {
      for (const auto* list : {&store.conditions, &store.guards}) {
        for (const Condition& condition : *list) {
          bool has_var = false, complete = true;
          p_.atoms.VisitVars(condition.index, [&](AtomId v) {
            has_var |= var.has_value() ? v == *var : KindOf(v) == Var::kRuntime;
            complete &= KindOf(v) == Var::kStatic ||
                        std::find(defined_.begin(), defined_.end(), v) != defined_.end();
          });
          if (!has_var || !complete || PartsOf(condition.index).mixed) continue;
          const Class c = ClassOf(condition);
          if (std::find(ready.begin(), ready.end(), c) == ready.end()) ready.push_back(c);
        }
      }
    });
    return ready;
  }

  template <typename F>
  void VisitStores(StmtId id, bool cases, F&& visit) {
    if (id == kNoStmt) return;
    const Stmt& stmt = p_.stmts[id];
    if (stmt.kind == Stmt::Kind::kStore) return visit(stmt);
    if (stmt.cases && !cases) return;
    for (StmtId child : stmt.children) VisitStores(child, cases, visit);
  }

  bool Has(const Stmt& store, const Class& decided) const {
    const auto in = [&](const Condition& c) {
      return c.extent == decided.extent && ClassOf(c) == decided;
    };
    return std::any_of(store.conditions.begin(), store.conditions.end(), in) ||
           std::any_of(store.guards.begin(), store.guards.end(), in);
  }

  // Copies a subtree with one class of conditions decided. With kStatic, the runtime part is
  // `value`. Returns kNoStmt if nothing is left.
  StmtId Specialize(StmtId id, const Class& decided, Mode mode, int64_t value = 0) {
    if (id == kNoStmt) return kNoStmt;
    Stmt stmt = p_.stmts[id];
    if (stmt.kind == Stmt::Kind::kStore) {
      bool changed = false;
      for (auto* list : {&stmt.conditions, &stmt.guards}) {
        for (size_t c = list->size(); c-- > 0;) {
          if ((*list)[c].extent != decided.extent || ClassOf((*list)[c]) != decided) continue;
          if (mode == Mode::kFails) return kNoStmt;
          changed = true;
          if (mode == Mode::kStatic) {
            (*list)[c].index = PartsOf((*list)[c].index).fixed + value;
          } else {
            list->erase(list->begin() + c);
          }
        }
      }
      return changed ? p_.Add(std::move(stmt)) : id;
    }
    std::vector<StmtId> children;
    for (StmtId child : stmt.children) {
      const StmtId copy = Specialize(child, decided, mode, value);
      if (copy != kNoStmt || stmt.kind == Stmt::Kind::kIf) children.push_back(copy);
    }
    if (std::all_of(children.begin(), children.end(),
                    [](StmtId child) { return child == kNoStmt; }))
      return kNoStmt;
    stmt.children = std::move(children);
    return p_.Add(std::move(stmt));
  }

  // Adds bounds to the loop that ensure 0 ≤ index < extent. Returns false if the index is not
  // affine in the loop's variable.
  bool AddBounds(Stmt& loop, const Index& index, int64_t extent) {
    const int64_t a = index.CoeffOf(loop.var);
    const Index rest = index - Index::Of(loop.var, a);
    if (a == 0 || p_.atoms.DependsOn(rest, loop.var)) return false;
    const Index last = Index(extent - 1) - rest;  // a·v ≤ last, a·v ≥ −rest
    Index begin, end;
    if (a > 0) {
      begin = p_.atoms.FloorDiv(rest, a) * -1;
      end = p_.atoms.FloorDiv(last, a) + 1;
    } else {
      begin = p_.atoms.FloorDiv(last, -a) * -1;
      end = p_.atoms.FloorDiv(rest, -a) + 1;
    }
    if (p_.atoms.RangeOf(begin).max > 0) loop.begins.push_back(begin);
    if (p_.atoms.RangeOf(end).min < loop.extent) loop.ends.push_back(end);
    return true;
  }

  StmtId NarrowLoop(StmtId id, int copies) {
    Stmt loop = p_.stmts[id];
    defined_.push_back(loop.var);
    StmtId body = loop.children[0];
    if (loop.loop == ir::LoopKind::kBound) {
      // No statement may be between bound loops: decide conditions inside the innermost one.
      const Stmt& inner = p_.stmts[body];
      const bool innermost = inner.kind != Stmt::Kind::kFor || inner.loop != ir::LoopKind::kBound;
      body = innermost ? NarrowWhole(body, copies) : Narrow(body, copies);
    } else {
      if (!p_.HasBarrier(body)) {
        for (const Class& decided : ReadyConditions(body, loop.var))
          body = Decide(&loop, body, decided, copies);
      }
      if (body != kNoStmt) body = Narrow(body, copies);
    }
    defined_.pop_back();
    if (body == kNoStmt) return kNoStmt;
    loop.children = {body};
    return p_.Add(std::move(loop));
  }

  StmtId If(Index index, int64_t extent, StmtId then, StmtId otherwise) {
    if (then == kNoStmt && otherwise == kNoStmt) return kNoStmt;
    const ir::Range range = p_.atoms.RangeOf(index);
    if (range.min >= 0 && range.max < extent) return then;
    if (range.max < 0 || range.min >= extent) return otherwise;
    Stmt branch{.kind = Stmt::Kind::kIf, .condition = {std::move(index), extent}};
    branch.children.push_back(then);
    if (otherwise != kNoStmt) branch.children.push_back(otherwise);
    return p_.Add(std::move(branch));
  }

  // Returns `body` with one class of conditions decided. `loop` is the loop around it, or null.
  StmtId Decide(Stmt* loop, StmtId body, const Class& decided, int& copies) {
    bool everywhere = true;
    VisitStores(body, /*cases=*/true,
                [&](const Stmt& store) { everywhere &= Has(store, decided); });
    const Index& runtime = decided.runtime;
    const int64_t extent = decided.extent;
    const ir::Range s = decided.fixed;
    // The iterations of a parallel loop are distributed by number, so its bounds stay unchanged.
    const bool bounds = everywhere && loop != nullptr && loop->loop == ir::LoopKind::kSerial;
    if (s.min == 0 && s.max == 0) {
      if (bounds && AddBounds(*loop, runtime, extent))
        return Specialize(body, decided, Mode::kHolds);
      return If(runtime, extent, Specialize(body, decided, Mode::kHolds),
                Specialize(body, decided, Mode::kFails));
    }
    const ir::Range r = p_.atoms.RangeOf(runtime);
    int64_t step = 0;
    for (const ir::IndexTerm& term : runtime.terms()) step = std::gcd(step, term.coeff);
    step = std::max<int64_t>(step, 1);
    // Values of the runtime part for which only some of the tile is inside the domain.
    std::vector<int64_t> partial;
    bool interior = false;
    const int64_t low = std::max(r.min, -s.max), high = std::min(r.max, extent - 1 - s.min);
    int64_t p = r.min + ir::CeilDivInt(low - r.min, step) * step;
    for (; p <= high; p += step) {
      if (p + s.min >= 0 && p + s.max < extent) {
        interior = true;
        // Skip to the last interior value.
        const int64_t last = extent - 1 - s.max;
        p += (last - p) / step * step;
      } else {
        partial.push_back(p);
        if (partial.size() > kMaxPartialCases) return body;
      }
    }
    const int cases = static_cast<int>(partial.size()) + interior;
    if (copies * std::max(cases, 1) > kMaxCopies) return body;
    copies *= std::max(cases, 1);
    const bool bounded = bounds && AddBounds(*loop, runtime + s.max, extent + s.max - s.min);
    const bool may_miss = !bounded && (r.min + s.max < 0 || r.max + s.min >= extent);
    StmtId result = may_miss ? Specialize(body, decided, Mode::kFails) : kNoStmt;
    const StmtId inside = interior ? Specialize(body, decided, Mode::kHolds) : kNoStmt;
    if (interior && !may_miss) result = inside;
    for (size_t i = partial.size(); i-- > 0;) {
      const StmtId part = Specialize(body, decided, Mode::kStatic, partial[i]);
      if (result == kNoStmt && i + 1 == partial.size() && !may_miss && !interior) {
        result = part;  // the only remaining value
      } else {
        result = If(runtime + -partial[i], 1, part, result);
      }
    }
    if (interior && may_miss)
      result = If(runtime + s.min, extent - (s.max - s.min), inside, result);
    return result;
  }

  LoweredProgram& p_;
  std::vector<Var> kind_;
  std::vector<AtomId> defined_;  // runtime variables of the enclosing loops
};

}  // namespace

absl::Status NarrowDomain(LoweredProgram& program) {
  Narrower(program).Run();
  return absl::OkStatus();
}

}  // namespace hone::lower
