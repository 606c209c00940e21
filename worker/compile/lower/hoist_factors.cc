#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "worker/compile/lower/passes.h"

namespace hone::lower {
namespace {

using ir::AtomId;
using ir::BufferId;
using ir::DType;
using ir::ExprId;
using ir::Index;
using ir::Op;

// The partial sums take as many registers as the accumulators, which must leave some for operands
// on CPUs that have 16.
constexpr int64_t kMostRegisters = 6;
constexpr int64_t kLeastSteps = 4;

class FactorHoister {
 public:
  explicit FactorHoister(LoweredProgram& program) : p_(program) {}

  void Run() {
    const size_t count = p_.stmts.size();
    for (size_t s = 0; s < count; ++s) Visit(static_cast<StmtId>(s));
  }

 private:
  bool DependsOn(ExprId id, AtomId var) const {
    bool depends = false;
    p_.pool.Visit(id, [&](const ir::Expr& expr) {
      if (expr.indices < 0) return;
      for (const Index& index : p_.pool.IndicesOf(expr)) {
        depends |= p_.atoms.DependsOn(index, var);
      }
    });
    return depends;
  }

  // Appends the factors of a product, and divides them by whether they depend on the variable.
  void Divide(ExprId id, AtomId var, std::vector<ExprId>& fixed, std::vector<ExprId>& varying) {
    const ir::Expr& expr = p_.pool[id];
    if (expr.op != Op::kMul) return (DependsOn(id, var) ? varying : fixed).push_back(id);
    const ExprId a = expr.a, b = expr.b;
    Divide(a, var, fixed, varying);
    Divide(b, var, fixed, varying);
  }
  ExprId Product(const std::vector<ExprId>& factors) {
    ExprId product = factors[0];
    for (size_t f = 1; f < factors.size(); ++f) {
      product = p_.pool.Binary(Op::kMul, product, factors[f]);
    }
    return product;
  }

  // Divides the sum of an unrolled loop over steps of a reduction, if the loop contains only the
  // update of a tile of accumulators in registers.
  void Visit(StmtId id) {
    const Stmt loop = p_.stmts[id];
    if (loop.kind != Stmt::Kind::kFor || loop.loop != ir::LoopKind::kUnrolled ||
        loop.extent < kLeastSteps) {
      return;
    }
    std::vector<StmtId> tile;
    int64_t registers = 1;
    StmtId at = loop.children[0];
    for (; p_.stmts[at].kind == Stmt::Kind::kFor; at = p_.stmts[at].children[0]) {
      const Stmt& inner = p_.stmts[at];
      if (!LoweredProgram::IsStatic(inner.loop) || inner.children.size() != 1) return;
      if (inner.loop == ir::LoopKind::kUnrolled) registers *= inner.extent;
      tile.push_back(at);
    }
    const Stmt store = p_.stmts[at];
    if (store.kind != Stmt::Kind::kStore || store.reducer != ir::Reducer::kSum ||
        registers > kMostRegisters || !store.guards.empty() || !store.tensor_vars.empty() ||
        store.has_init || !store.may_leave_garbage) {
      return;
    }
    const BufferId accumulator = store.outputs[0];
    const auto reduces = [&](AtomId var) {
      return std::find(store.reduce_vars.begin(), store.reduce_vars.end(), var) !=
             store.reduce_vars.end();
    };
    if (p_.buffers[accumulator].scope != ir::Scope::kFragment ||
        p_.buffers[accumulator].dtype != DType::kF32 || !reduces(loop.var)) {
      return;
    }
    ir::Shape shape;
    ir::IndexList places;
    for (const StmtId inner : tile) {
      if (reduces(p_.stmts[inner].var)) return;
      shape.push_back(p_.stmts[inner].extent);
      places.push_back(Index::Of(p_.stmts[inner].var));
    }
    const auto needs = [&](const ir::Condition& condition) {
      return p_.atoms.DependsOn(condition.index, loop.var);
    };
    // Lanes are the last dimension of a buffer in registers.
    for (size_t l = 0; l + 1 < tile.size(); ++l) {
      if (p_.stmts[tile[l]].loop == ir::LoopKind::kVectorized) return;
    }
    if (tile.empty() || std::any_of(store.conditions.begin(), store.conditions.end(), needs)) {
      return;
    }
    std::vector<ExprId> fixed, varying;
    Divide(store.values[0], loop.var, fixed, varying);
    if (fixed.empty() || varying.empty()) return;

    const BufferId part = AddRegisters(accumulator, ".part", shape);
    // Of x * (w - z) with the same z in all steps, such as a zero point, the steps sum x * w and x.
    std::vector<StmtId> row;
    const Offset offset = registers > 1 ? SharedOffset(varying, loop.var, tile, row) : Offset();
    BufferId shared = -1;
    ir::IndexList shared_places;
    if (offset.found()) {
      ir::Shape shared_shape;
      for (const StmtId inner : row) {
        shared_shape.push_back(p_.stmts[inner].extent);
        shared_places.push_back(Index::Of(p_.stmts[inner].var));
      }
      shared = AddRegisters(accumulator, ".shared", shared_shape);
    }

    const auto clear = [&](absl::Span<const StmtId> loops, BufferId buffer, const ir::IndexList& at,
                           const std::vector<ir::Condition>& conditions) {
      return Over(loops, "_clear",
                  {.kind = Stmt::Kind::kStore,
                   .outputs = {buffer},
                   .indices = at,
                   .values = {p_.pool.Const(DType::kF32, 0.0)},
                   .conditions = conditions,
                   .may_leave_garbage = true});
    };
    std::vector<StmtId> sequence = {clear(tile, part, places, store.conditions)};
    ExprId sum = p_.pool.Load(part, DType::kF32, places);
    Stmt step = store;
    step.reduce_vars = {loop.var};
    step.first.clear();
    StmtId body = loop.children[0];
    if (offset.found()) {
      Stmt add = step;
      std::erase_if(add.conditions, [&](const ir::Condition& condition) {
        return absl::c_any_of(tile, [&](StmtId inner) {
          return !absl::c_linear_search(row, inner) &&
                 p_.atoms.DependsOn(condition.index, p_.stmts[inner].var);
        });
      });
      sequence.push_back(clear(row, shared, shared_places, add.conditions));
      add.outputs = {shared};
      add.indices = shared_places;
      add.values = {Product(offset.others)};
      body = p_.Add({.kind = Stmt::Kind::kSeq, .children = {body, Over(row, "_shared", add)}});
      const ExprId less = p_.pool.Binary(Op::kMul, p_.pool.Load(shared, DType::kF32, shared_places),
                                         offset.subtracted);
      sum = p_.pool.Binary(Op::kSub, sum, less);
      varying = offset.others;
      varying.push_back(offset.from);
    }
    Stmt add = store;
    std::erase(add.reduce_vars, loop.var);
    add.first.clear();
    add.values = {p_.pool.Binary(Op::kMul, sum, Product(fixed))};
    const StmtId combine = Over(tile, "_add", std::move(add));
    step.outputs = {part};
    step.indices = places;
    step.values = {Product(varying)};
    p_.stmts[at] = std::move(step);
    Stmt steps = loop;
    steps.children = {body};
    sequence.push_back(p_.Add(std::move(steps)));
    sequence.push_back(combine);
    p_.stmts[id] = Stmt{.kind = Stmt::Kind::kSeq, .children = std::move(sequence)};
  }

  BufferId AddRegisters(BufferId like, absl::string_view suffix, ir::Shape shape) {
    p_.buffers.push_back({.name = absl::StrCat(p_.buffers[like].name, suffix),
                          .dtype = DType::kF32,
                          .shape = std::move(shape),
                          .scope = ir::Scope::kFragment});
    return static_cast<BufferId>(p_.buffers.size()) - 1;
  }

  // Puts a store into a nest over some loops of the tile, with its own variables.
  StmtId Over(absl::Span<const StmtId> tile, absl::string_view suffix, Stmt stmt) {
    std::vector<StmtId> loops;
    std::vector<std::pair<AtomId, Index>> renamed;
    for (const StmtId inner : tile) loops.push_back(p_.AddCopy(inner, suffix, renamed));
    const auto rename = [&](const Index& index) { return p_.atoms.Substitute(index, renamed); };
    for (Index& index : stmt.indices) index = rename(index);
    for (ir::Condition& condition : stmt.conditions) condition.index = rename(condition.index);
    for (ExprId& value : stmt.values) {
      value = p_.pool.Rewrite(value, [](const ir::Expr&) { return ir::kNoExpr; }, rename);
    }
    return p_.Nest(loops, p_.Add(std::move(stmt)));
  }

  // A product others * (from - subtracted).
  struct Offset {
    std::vector<ExprId> others;
    ExprId from = ir::kNoExpr, subtracted = ir::kNoExpr;
    bool found() const { return from != ir::kNoExpr; }
  };
  // Whether it is an element of packed weights, as UnpackElements makes it.
  bool IsMaskedWord(ExprId id) const {
    const ir::Expr& cast = p_.pool[id];
    return cast.op == Op::kCast && p_.pool[cast.a].op == Op::kAnd;
  }
  // Returns both sides, as floats, of a difference of whole numbers of a few bits. Those of other
  // floats may be far larger than the difference, so that sums of them would lose its digits.
  std::pair<ExprId, ExprId> WholeDifference(ExprId id) {
    const auto is_cast_from = [&](ExprId side, bool (*accepts)(DType)) {
      const ir::Expr& cast = p_.pool[side];
      return cast.op == Op::kCast && accepts(p_.pool[cast.a].dtype);
    };
    const ir::Expr expr = p_.pool[id];
    constexpr auto kIsByte = [](DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; };
    constexpr auto kIsFew = [](DType dtype) {
      return dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI4 ||
             dtype == DType::kU4 || dtype == DType::kBool;
    };
    if (expr.op == Op::kSub && (is_cast_from(expr.a, kIsFew) || IsMaskedWord(expr.a))) {
      return {expr.a, expr.b};
    }
    const ir::Expr inner = expr.op == Op::kCast ? p_.pool[expr.a] : expr;
    if (inner.op != Op::kSub || inner.dtype != DType::kI32 || expr.op != Op::kCast ||
        !is_cast_from(inner.a, kIsByte) || !is_cast_from(inner.b, kIsByte)) {
      return {ir::kNoExpr, ir::kNoExpr};
    }
    return {p_.pool.Cast(DType::kF32, inner.a), p_.pool.Cast(DType::kF32, inner.b)};
  }

  // Finds a factor that is a difference with the same right side in all steps, where the other
  // factors are the same for several vectors of the tile. `row`: the loops of the tile whose
  // elements have separate sums of the other factors.
  Offset SharedOffset(const std::vector<ExprId>& factors, AtomId var, absl::Span<const StmtId> tile,
                      std::vector<StmtId>& row) {
    Offset offset;
    for (const ExprId factor : factors) {
      const std::pair<ExprId, ExprId> sides = WholeDifference(factor);
      if (sides.first == ir::kNoExpr || DependsOn(sides.second, var) || offset.found()) {
        offset.others.push_back(factor);
      } else {
        offset.from = sides.first;
        offset.subtracted = sides.second;
      }
    }
    if (offset.others.empty()) return {};
    bool shares = false;
    for (const StmtId inner : tile) {
      const Stmt& loop = p_.stmts[inner];
      const bool needs =
          absl::c_any_of(offset.others, [&](ExprId other) { return DependsOn(other, loop.var); });
      if (loop.loop == ir::LoopKind::kVectorized) {
        if (needs) return {};
      } else if (!needs) {
        shares |= loop.extent > 1;
        continue;
      }
      row.push_back(inner);
    }
    return shares && !row.empty() ? offset : Offset();
  }

  LoweredProgram& p_;
};

}  // namespace

absl::Status HoistFactors(LoweredProgram& program) {
  if (!program.IsForGpu()) FactorHoister(program).Run();
  return absl::OkStatus();
}

}  // namespace hone::lower
