#include <algorithm>
#include <optional>

#include "common/ir/cases.h"
#include "worker/compile/lower/domain_cases.h"
#include "worker/compile/lower/passes.h"

namespace hone::lower {

using ir::AtomId;
using ir::Condition;
using ir::Index;

namespace {

// Limits on the cases of a condition, and on the code: for CPUs the number of unrolled stores in
// all copies of a body, for GPUs the number of copies. Beyond the limits, conditions stay with the
// stores.
constexpr int kMaxCases = 16;
constexpr double kMaxStores = 2048;
constexpr int kMaxGpuCases = 5;
constexpr double kMaxGpuCopies = 16;

class Narrower {
 public:
  explicit Narrower(LoweredProgram& program)
      : p_(program), parts_(program), values_(program.atoms) {}

  void Run() {
    for (LoweredKernel& kernel : p_.kernels) kernel.body = Narrow(kernel.body, 1);
  }

 private:
  enum class Mode { kHolds, kFails, kStatic };

  // Conditions that one decision settles: they have the same runtime part, and static parts with
  // the same range and step. (An accumulator's load, update and store each have their own static
  // loops.)
  using Class = TileCondition;

  // Returns kNoStmt if nothing is left.
  StmtId Narrow(StmtId id, double copies) {
    if (id == kNoStmt) return kNoStmt;
    const Stmt stmt = p_.stmts[id];
    if (stmt.kind == Stmt::Kind::kStore || stmt.kind == Stmt::Kind::kBarrier) return id;
    if (stmt.cases || (stmt.kind == Stmt::Kind::kSeq && p_.HasBarrier(id))) {
      return NarrowEach(id, copies);
    }
    if (stmt.kind == Stmt::Kind::kFor && !LoweredProgram::IsStatic(stmt.loop))
      return NarrowLoop(id, copies);
    std::vector<StmtId> children;
    for (size_t c = 0; c < stmt.children.size(); ++c) {
      const int outside = values_.size();
      if (stmt.kind == Stmt::Kind::kIf) EnterBranch(stmt, c);
      const StmtId narrowed = Narrow(stmt.children[c], copies);
      values_.Shrink(outside);
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
  StmtId NarrowEach(StmtId id, double copies) {
    std::vector<StmtId> children;
    for (StmtId child : std::vector<StmtId>(p_.stmts[id].children)) {
      double copies_of_child = copies;
      child = NarrowWhole(child, copies_of_child);
      if (child != kNoStmt) children.push_back(child);
    }
    if (children.empty()) return kNoStmt;
    p_.stmts[id].children = std::move(children);
    return id;
  }

  // Decides all conditions that can be decided before the statement runs, then narrows it.
  StmtId NarrowWhole(StmtId id, double& copies) {
    if (!p_.HasBarrier(id)) {
      for (const Class& decided : ReadyConditions(id, std::nullopt))
        id = Decide(id, decided, copies);
    }
    return Narrow(id, copies);
  }

  // Adds what holds in a branch: the first is taken if the condition holds, the second otherwise.
  void EnterBranch(const Stmt& branch, size_t side) {
    const Condition& condition = branch.condition;
    if (side == 0) return values_.Add(condition.index, {0, condition.extent - 1});
    std::optional<std::vector<int64_t>> others = values_.Of(condition.index);
    if (!others.has_value()) return;
    std::erase_if(*others, [&](int64_t value) { return value >= 0 && value < condition.extent; });
    if (!others->empty()) values_.Add(condition.index, {others->front(), others->back()});
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
            has_var |= var.has_value() ? v == *var : parts_.IsRuntime(v);
            complete &= parts_.IsStatic(v) ||
                        std::find(defined_.begin(), defined_.end(), v) != defined_.end();
          });
          if (!has_var || !complete || parts_.Of(condition.index).mixed) continue;
          const Class c = parts_.Of(condition);
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
      return c.extent == decided.extent && parts_.Of(c) == decided;
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
          if ((*list)[c].extent != decided.extent || parts_.Of((*list)[c]) != decided) continue;
          if (mode == Mode::kFails) return kNoStmt;
          changed = true;
          if (mode == Mode::kStatic) {
            (*list)[c].index = parts_.Of((*list)[c].index).fixed + value;
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

  StmtId NarrowLoop(StmtId id, double copies) {
    Stmt loop = p_.stmts[id];
    const int outside = values_.size();
    defined_.push_back(loop.var);
    StmtId body = loop.children[0];
    if (loop.loop == ir::LoopKind::kBound) {
      // No statement may be between bound loops: decide conditions inside the innermost one.
      const Stmt& inner = p_.stmts[body];
      const bool innermost = inner.kind != Stmt::Kind::kFor || inner.loop != ir::LoopKind::kBound;
      body = innermost ? NarrowWhole(body, copies) : Narrow(body, copies);
    } else {
      if (!p_.HasBarrier(body)) {
        std::vector<Class> ready = ReadyConditions(body, loop.var);
        std::erase_if(ready, [&](const Class& c) { return BecomesBounds(loop, body, c); });
        for (const Class& decided : ready) body = Decide(body, decided, copies);
        if (values_.AreContradictory()) body = kNoStmt;  // the loop has no iterations
      }
      if (body != kNoStmt) body = Narrow(body, copies);
    }
    values_.Shrink(outside);
    defined_.pop_back();
    if (body == kNoStmt) return kNoStmt;
    loop.children = {body};
    return Divided(std::move(loop));
  }

  // Divides a serial loop that begins or ends with a branch of its body, such as the remainder of
  // an unrolled reduction, into a loop for each side. A branch inside would be tested in every
  // iteration, and its sides would keep the accumulators in different registers.
  StmtId Divided(Stmt loop) {
    const Stmt branch = p_.stmts[loop.children[0]];
    if (loop.loop != ir::LoopKind::kSerial || branch.kind != Stmt::Kind::kIf || p_.IsForGpu())
      return p_.Add(std::move(loop));
    const Index& index = branch.condition.index;
    const int64_t a = index.CoeffOf(loop.var), extent = branch.condition.extent;
    const Index rest = index - Index::Of(loop.var, a);
    const ir::Range range = values_.RangeOf(index);
    // The condition can only fail at one end of its range, and thus of the loop.
    const bool fails_above = range.max >= extent;
    if (a == 0 || p_.atoms.DependsOn(rest, loop.var) || fails_above == (range.min < 0))
      return p_.Add(std::move(loop));
    // The first iteration of the second loop.
    const Index last = Index(extent - 1) - rest;  // a·v ≤ last, a·v ≥ −rest
    const Index border =
        fails_above ? (a > 0 ? p_.atoms.FloorDiv(last, a) + 1 : p_.atoms.FloorDiv(last, -a) * -1)
                    : (a > 0 ? p_.atoms.FloorDiv(rest, a) * -1 : p_.atoms.FloorDiv(rest, -a) + 1);
    const StmtId then = branch.children[0];
    const StmtId otherwise = branch.children.size() > 1 ? branch.children[1] : kNoStmt;
    const bool holds_first = fails_above == (a > 0);
    std::vector<StmtId> loops;
    for (const bool first : {true, false}) {
      const StmtId body = first == holds_first ? then : otherwise;
      if (body == kNoStmt) continue;
      Stmt part = loop;
      part.children = {body};
      const ir::Range at = p_.atoms.RangeOf(border);
      if (first && at.min < loop.extent) part.ends.push_back(border);
      if (!first && at.max > 0) part.begins.push_back(border);
      loops.push_back(Divided(std::move(part)));
    }
    if (loops.empty()) return kNoStmt;
    if (loops.size() == 1) return loops[0];
    return p_.Add({.kind = Stmt::Kind::kSeq, .children = std::move(loops)});
  }

  // Limits the loop to iterations in which the conditions can hold, if all stores in its body have
  // them. Returns whether they then hold, and removes them from the body in this case.
  bool BecomesBounds(Stmt& loop, StmtId& body, const Class& decided) {
    // The iterations of a parallel loop are distributed by number, so its bounds stay unchanged.
    if (loop.loop != ir::LoopKind::kSerial) return false;
    bool everywhere = true;
    VisitStores(body, /*cases=*/true,
                [&](const Stmt& store) { everywhere &= Has(store, decided); });
    if (!everywhere) return false;
    const std::optional<ir::Range> fixed = FixedPart(body, decided);
    if (!fixed.has_value()) return false;
    const auto [least, most] = *fixed;
    if (!AddBounds(loop, decided.runtime + most, decided.extent + most - least)) return false;
    values_.Add(decided.runtime, {-most, decided.extent - 1 - least});
    if (least != most) return false;
    body = Specialize(body, decided, Mode::kHolds);
    return true;
  }

  // Returns the range of the conditions' static parts over the points of the tile at which no other
  // condition of the store excludes it; nullopt if there are no points.
  std::optional<ir::Range> FixedPart(StmtId body, const Class& decided) {
    std::optional<ir::Range> all;
    VisitStores(body, /*cases=*/true, [&](const Stmt& store) {
      const int outside = values_.size();
      for (const auto* list : {&store.conditions, &store.guards}) {
        for (const Condition& other : *list) {
          if (!parts_.HasRuntimePart(other.index)) values_.Add(other.index, {0, other.extent - 1});
        }
      }
      for (const auto* list : {&store.conditions, &store.guards}) {
        for (const Condition& condition : *list) {
          if (condition.extent != decided.extent || parts_.Of(condition) != decided) continue;
          ir::Range range = values_.RangeOf(parts_.Of(condition.index).fixed);
          const int64_t first = decided.fixed.min;
          range.min = first + ir::CeilDivInt(range.min - first, decided.step) * decided.step;
          range.max = first + ir::FloorDivInt(range.max - first, decided.step) * decided.step;
          if (range.min > range.max) continue;
          if (!all.has_value()) all = range;
          all = {std::min(all->min, range.min), std::max(all->max, range.max)};
        }
      }
      values_.Shrink(outside);
    });
    return all;
  }

  StmtId If(Index index, int64_t extent, StmtId then, StmtId otherwise) {
    if (then == kNoStmt && otherwise == kNoStmt) return kNoStmt;
    const ir::Range range = values_.RangeOf(index);
    if (range.min >= 0 && range.max < extent) return then;
    if (range.max < 0 || range.min >= extent) return otherwise;
    Stmt branch{.kind = Stmt::Kind::kIf, .condition = {std::move(index), extent}};
    branch.children.push_back(then);
    if (otherwise != kNoStmt) branch.children.push_back(otherwise);
    return p_.Add(std::move(branch));
  }

  // Runs `inside` where all points of the tile are inside.
  StmtId IfInterior(const TileCondition& tile, StmtId inside, StmtId otherwise) {
    return If(tile.runtime + tile.fixed.min, tile.extent - (tile.fixed.max - tile.fixed.min),
              inside, otherwise);
  }

  // Whether a body, of which there are `copies`, may be replaced by several cases, whose code is
  // `size` times as long.
  bool MayCopy(StmtId body, double copies, int cases, double size) const {
    if (cases <= 1) return true;
    if (p_.IsForGpu()) return cases <= kMaxGpuCases && copies * size <= kMaxGpuCopies;
    return cases <= kMaxCases && copies * size * parts_.StoresIn(body) <= kMaxStores;
  }

  // Returns `body` with one class of conditions decided.
  StmtId Decide(StmtId body, const Class& decided, double& copies) {
    if (body == kNoStmt) return body;
    if (p_.stmts[body].kind == Stmt::Kind::kIf) return DecideBranches(body, decided, copies);
    const std::optional<ir::Range> fixed = FixedPart(body, decided);
    if (!fixed.has_value()) return body;
    TileCondition tile = decided;
    tile.fixed = *fixed;
    const DomainCases found = CasesOf(tile, values_);
    if (!MayCopy(body, copies, found.count(), found.Size())) {
      // Tiles at the border keep the condition.
      if (!found.has_interior || p_.IsForGpu() || !MayCopy(body, copies, 2, 2)) return body;
      copies *= 2;
      return IfInterior(tile, Specialize(body, decided, Mode::kHolds), body);
    }
    copies *= std::max(found.Size(), 1.0);
    // The last alternative needs no test.
    StmtId result = found.misses ? Specialize(body, decided, Mode::kFails) : kNoStmt;
    bool tested = found.misses;
    const auto add_interior = [&] {
      if (!found.has_interior) return;
      const StmtId inside = Specialize(body, decided, Mode::kHolds);
      result = tested ? IfInterior(tile, inside, result) : inside;
      tested = true;
    };
    const bool interior_first = found.misses || found.partial.size() > 2;
    if (!interior_first) add_interior();
    for (size_t i = found.partial.size(); i-- > 0;) {
      const DomainCases::Case& values = found.partial[i];
      const StmtId part = Specialize(body, decided, Mode::kStatic, values.first);
      result = tested ? If(decided.runtime + -values.first, values.values(), part, result) : part;
      tested = true;
    }
    if (interior_first) add_interior();
    return result;
  }

  // Decides a class of conditions in each branch of an earlier decision, whose condition excludes
  // some of the cases.
  StmtId DecideBranches(StmtId id, const Class& decided, double& copies) {
    Stmt branch = p_.stmts[id];
    double most = copies;
    for (size_t c = 0; c < branch.children.size(); ++c) {
      const int outside = values_.size();
      EnterBranch(branch, c);
      double copies_of_child = copies;
      branch.children[c] = Decide(branch.children[c], decided, copies_of_child);
      most = std::max(most, copies_of_child);
      values_.Shrink(outside);
    }
    copies = most;
    if (std::all_of(branch.children.begin(), branch.children.end(),
                    [](StmtId child) { return child == kNoStmt; }))
      return kNoStmt;
    return p_.Add(std::move(branch));
  }

  LoweredProgram& p_;
  const StaticParts parts_;
  std::vector<AtomId> defined_;  // runtime variables of the enclosing loops
  ir::IndexValues values_;       // under the conditions of the enclosing loops and branches
};

}  // namespace

absl::Status NarrowDomain(LoweredProgram& program) {
  Narrower(program).Run();
  return absl::OkStatus();
}

}  // namespace hone::lower
