#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/ir/workload.h"
#include "common/schedule/rewrite/edit.h"
#include "common/schedule/rewrite/rewrites.h"
#include "common/schedule/rewrite/winograd_points.h"

namespace hone::schedule {
namespace {

using ir::AtomId;
using ir::Axis;
using ir::BufferId;
using ir::DType;
using ir::ExprId;
using ir::Index;
using ir::Op;
using ir::Reducer;

// A stage in the form Y[n, h, w, co] = Σ X[n, h + r + top, w + s + left, ci]·W[r, s, ci, co], with
// zeros outside X.
struct Conv2dForm {
  ir::Axis n, h, w, co;  // of the output, in its order
  ir::Axis r, s, ci;     // reduced
  ir::BufferId input = -1, weight = -1;
  int64_t height = 0, width = 0;  // of the input
  int64_t top = 0, left = 0;      // −padding
};

absl::Status NotConv2d(absl::string_view why) { return absl::FailedPreconditionError(why); }

// Matches index = axis + spatial + constant, where `axis` is one of `reduce`, and returns that
// axis.
absl::StatusOr<Axis> Window(const Index& index, const Axis& spatial,
                            const std::vector<Axis>& reduce) {
  if (index.CoeffOf(spatial.var) != 1) return NotConv2d("the stride is not 1");
  const Index rest = index - Index::Of(spatial.var) + -index.constant();
  for (const Axis& axis : reduce) {
    if (rest.SingleAtom() == axis.var) return axis;
    if (rest.CoeffOf(axis.var) > 1) return NotConv2d("the kernel is dilated");
  }
  return NotConv2d("the input's row and column are not an output's plus a kernel's");
}

// FailedPrecondition: the stage does not have this form; the message states the difference.
absl::StatusOr<Conv2dForm> MatchConv2d(const ir::Workload& workload, const ir::Stage& stage) {
  if (stage.reducer != ir::Reducer::kSum || stage.spatial.size() != 4 || stage.reduce.size() != 3) {
    return NotConv2d("not a sum over three axes for an output of four (NHWC)");
  }
  const ir::Expr product = workload.pool[stage.values[0]];
  if (product.op != ir::Op::kMul) return NotConv2d("the sum is not of products");
  for (const bool swapped : {false, true}) {
    const ir::Expr x = workload.pool[swapped ? product.b : product.a],
                   w = workload.pool[swapped ? product.a : product.b];
    if (x.op != ir::Op::kLoad || w.op != ir::Op::kLoad || x.gathered >= 0 || w.gathered >= 0)
      return NotConv2d("the factors are not plain elements of two tensors");
    const ir::IndexList xi = workload.pool.IndicesOf(x), wi = workload.pool.IndicesOf(w);
    if (xi.size() != 4 || wi.size() != 4)
      return NotConv2d("the factors are not elements of tensors with four axes");
    Conv2dForm form{.n = stage.spatial[0],
                    .h = stage.spatial[1],
                    .w = stage.spatial[2],
                    .co = stage.spatial[3],
                    .input = x.buffer,
                    .weight = w.buffer};
    if (wi[3].SingleAtom() != form.co.var || xi[0].SingleAtom() != form.n.var) {
      if (swapped) return NotConv2d("the input is not NHWC or the weights are not r, s, ci, co");
      continue;
    }
    const auto r = Window(xi[1], form.h, stage.reduce), s = Window(xi[2], form.w, stage.reduce);
    if (!r.ok()) return r.status();
    if (!s.ok()) return s.status();
    form.r = *r;
    form.s = *s;
    const auto ci =
        absl::c_find_if(stage.reduce, [&](const Axis& a) { return a.var == xi[3].SingleAtom(); });
    if (ci == stage.reduce.end() || form.r.var == form.s.var || wi[0].SingleAtom() != form.r.var ||
        wi[1].SingleAtom() != form.s.var || wi[2].SingleAtom() != ci->var) {
      return NotConv2d("the input is not NHWC or the weights are not r, s, ci, co");
    }
    form.ci = *ci;
    form.height = workload.tensors[form.input].shape[1];
    form.width = workload.tensors[form.input].shape[2];
    form.top = xi[1].constant();
    form.left = xi[2].constant();
    for (const ir::Condition& guard : stage.guards) {
      const bool row = guard.index == xi[1] && guard.extent == form.height;
      const bool column = guard.index == xi[2] && guard.extent == form.width;
      if (!row && !column) return NotConv2d("a guard is not the input's edge");
    }
    return form;
  }
  return NotConv2d("the factors are not elements of two tensors");
}

constexpr int64_t kKernel = 3;

class WinogradRewrite {
 public:
  WinogradRewrite(const ir::Workload& workload, int stage, const Conv2dForm& conv, int64_t m)
      : w_(workload),
        stage_(stage),
        conv_(conv),
        m_(m),
        alpha_(m + kKernel - 1),
        matrices_(MakeWinogradMatrices(static_cast<int>(m))),
        name_(w_.tensors[w_.stages[stage].tensors[0]].name),
        dtype_(w_.tensors[conv.input].dtype) {
    rows_ = ir::CeilDivInt(conv.h.extent, m);
    columns_ = ir::CeilDivInt(conv.w.extent, m);
    tiles_ = conv.n.extent * rows_ * columns_;
  }

  ir::Workload Run() {
    const BufferId d = Tile();
    const BufferId bd = Rows(d);
    const BufferId v = Input(bd);
    const BufferId u = Weights();
    const BufferId product = Products(v, u);
    Output(OutputRows(product));
    return Renumbered(std::move(w_));
  }

 private:
  Axis New(absl::string_view name, int64_t extent) { return NewAxis(w_, name, extent); }
  Axis NewTiles() { return New("t", tiles_); }
  static Index At(const Axis& axis) { return Index::Of(axis.var); }
  ir::ExprPool& pool() { return w_.pool; }
  ExprId Constant(double value) { return pool().Const(dtype_, value); }

  BufferId Insert(absl::string_view suffix, std::vector<Axis> spatial, ExprId value) {
    return InsertStage(w_, stage_, absl::StrCat(name_, suffix), std::move(spatial), Reducer::kNone,
                       {}, {}, value);
  }

  // Returns sum + c·term; `sum` may be kNoExpr. Factors ±1 need no multiplication.
  ExprId AddScaled(ExprId sum, double c, ExprId term) {
    if (c == 0) return sum;
    if (sum == ir::kNoExpr) {
      if (c == 1) return term;
      return c == -1 ? pool().Unary(Op::kNeg, term) : pool().Binary(Op::kMul, term, Constant(c));
    }
    if (c == 1) return pool().Binary(Op::kAdd, sum, term);
    if (c == -1) return pool().Binary(Op::kSub, sum, term);
    return pool().Binary(Op::kAdd, sum, pool().Binary(Op::kMul, term, Constant(c)));
  }
  // Returns Σ coefficients[i]·terms[i]. A term with the coefficient 1 comes first, so that every
  // other is one fused multiply-add.
  ExprId Combination(const std::vector<double>& coefficients, const std::vector<ExprId>& terms) {
    size_t first = absl::c_find(coefficients, 1.0) - coefficients.begin();
    if (first == coefficients.size()) first = 0;
    ExprId sum = AddScaled(ir::kNoExpr, coefficients[first], terms[first]);
    for (size_t i = 0; i < terms.size(); ++i) {
      if (i != first) sum = AddScaled(sum, coefficients[i], terms[i]);
    }
    return sum;
  }
  // Selects the element of `choices` given by `index`: a single expression if the loop is unrolled.
  ExprId Choose(const Index& index, const std::vector<ExprId>& choices) {
    ExprId chosen = choices.back();
    for (size_t i = choices.size() - 1; i-- > 0;) {
      const ExprId is = pool().Binary(Op::kEqual, pool().OfIndex(index),
                                      pool().Const(DType::kI64, static_cast<double>(i)));
      chosen = pool().Select(is, choices[i], chosen);
    }
    return chosen;
  }

  // Applies each row of Bᵀ to `terms`. The rows for points ±a are E ± a·O with the same even part E
  // and odd part O, which the code generator computes once.
  std::vector<ExprId> TransformInput(const std::vector<ExprId>& terms) {
    std::vector<ExprId> rows;
    for (int x = 0; x < alpha_; ++x) {
      const std::vector<double>& row = matrices_.bt[x];
      if (x == 0 || x == alpha_ - 1) {
        rows.push_back(Combination(row, terms));
        continue;
      }
      // The first of the pair is +a. Both parts are scaled to have 1 as their highest coefficient.
      const std::vector<double>& positive = matrices_.bt[(x - 1) / 2 * 2 + 1];
      std::vector<double> even(row.size(), 0), odd(row.size(), 0);
      double highest[2] = {0, 0};
      for (int i = 0; i < alpha_; ++i) {
        if (positive[i] != 0) highest[i % 2] = positive[i];
      }
      for (int i = 0; i < alpha_; ++i) (i % 2 == 0 ? even : odd)[i] = positive[i] / highest[i % 2];
      // For α of 4 to 8, the highest power of a row, α − 2, is even and has the coefficient 1.
      const double sign = x % 2 == 1 ? 1 : -1;
      rows.push_back(AddScaled(Combination(even, terms), sign * highest[1] / highest[0],
                               Combination(odd, terms)));
    }
    return rows;
  }

  // Applies each row of Aᵀ to `terms`. First adds and subtracts the terms of points ±p.
  std::vector<ExprId> TransformOutput(const std::vector<ExprId>& terms) {
    std::vector<ExprId> rows;
    for (int a = 0; a < m_; ++a) {
      const std::vector<double>& row = matrices_.at[a];
      std::vector<double> coefficients = {row[0]};
      std::vector<ExprId> sums = {terms[0]};
      for (int x = 1; x + 1 < alpha_; x += 2) {
        coefficients.push_back(row[x]);
        sums.push_back(pool().Binary(a % 2 == 0 ? Op::kAdd : Op::kSub, terms[x], terms[x + 1]));
      }
      coefficients.push_back(row.back());
      sums.push_back(terms.back());
      rows.push_back(Combination(coefficients, sums));
    }
    return rows;
  }

  BufferId Tile() {
    const Axis t = NewTiles(), i = New("i", alpha_), j = New("j", alpha_),
               ci = New("ci", conv_.ci.extent);
    ir::AtomTable& atoms = w_.atoms;
    const Index row = atoms.Mod(atoms.FloorDiv(At(t), columns_), rows_) * m_ + At(i) + conv_.top;
    const Index column = atoms.Mod(At(t), columns_) * m_ + At(j) + conv_.left;
    std::vector<ir::Condition> guards;
    const auto guard = [&](const Index& index, int64_t extent) {
      const ir::Range range = atoms.RangeOf(index);
      if (range.min < 0 || range.max >= extent) guards.push_back({index, extent});
    };
    guard(row, conv_.height);
    guard(column, conv_.width);
    const ExprId value =
        LoadOf(w_, conv_.input, {atoms.FloorDiv(At(t), rows_ * columns_), row, column, At(ci)});
    const bool inside = guards.empty();
    // A guard needs a reduction. Reduce over a single point; the neutral element is the padding.
    std::vector<Axis> reduce;
    if (!inside) reduce = {New("z", 1)};
    return InsertStage(w_, stage_, absl::StrCat(name_, "_d"), {t, i, j, ci},
                       inside ? Reducer::kNone : Reducer::kSum, std::move(reduce),
                       std::move(guards), value);
  }

  BufferId Rows(BufferId d) {
    const Axis t = NewTiles(), x = New("x", alpha_), j = New("j", alpha_),
               ci = New("ci", conv_.ci.extent);
    std::vector<ExprId> terms;
    for (int i = 0; i < alpha_; ++i)
      terms.push_back(LoadOf(w_, d, {At(t), Index(i), At(j), At(ci)}));
    return Insert("_bd", {t, x, j, ci}, Choose(At(x), TransformInput(terms)));
  }

  BufferId Input(BufferId bd) {
    const Axis x = New("x", alpha_), y = New("y", alpha_), t = NewTiles(),
               ci = New("ci", conv_.ci.extent);
    std::vector<ExprId> terms;
    for (int j = 0; j < alpha_; ++j)
      terms.push_back(LoadOf(w_, bd, {At(t), At(x), Index(j), At(ci)}));
    return Insert("_v", {x, y, t, ci}, Choose(At(y), TransformInput(terms)));
  }

  // A single stage, so that the double-precision intermediate is never stored.
  BufferId Weights() {
    const Axis x = New("x", alpha_), y = New("y", alpha_), ci = New("ci", conv_.ci.extent),
               co = New("co", conv_.co.extent);
    const auto coefficient = [&](const Axis& axis, int column) {
      std::vector<ExprId> choices;
      for (const std::vector<double>& row : matrices_.g)
        choices.push_back(pool().Const(DType::kF64, row[column]));
      return Choose(At(axis), choices);
    };
    const auto sum_of_products = [&](const Axis& axis, const std::vector<ExprId>& terms) {
      ExprId sum = pool().Binary(Op::kMul, terms[0], coefficient(axis, 0));
      for (int k = 1; k < kKernel; ++k)
        sum = pool().Binary(Op::kAdd, sum, pool().Binary(Op::kMul, terms[k], coefficient(axis, k)));
      return sum;
    };
    std::vector<ExprId> rows;
    for (int r = 0; r < kKernel; ++r) {
      std::vector<ExprId> terms;
      for (int s = 0; s < kKernel; ++s) {
        terms.push_back(pool().Cast(
            DType::kF64, LoadOf(w_, conv_.weight, {Index(r), Index(s), At(ci), At(co)})));
      }
      rows.push_back(sum_of_products(y, terms));
    }
    return Insert("_u", {x, y, ci, co}, pool().Cast(dtype_, sum_of_products(x, rows)));
  }

  BufferId Products(BufferId v, BufferId u) {
    const Axis x = New("x", alpha_), y = New("y", alpha_), t = NewTiles(),
               co = New("co", conv_.co.extent);
    const Axis ci = New("ci", conv_.ci.extent);
    const ExprId product = pool().Binary(Op::kMul, LoadOf(w_, v, {At(x), At(y), At(t), At(ci)}),
                                         LoadOf(w_, u, {At(x), At(y), At(ci), At(co)}));
    return InsertStage(w_, stage_, absl::StrCat(name_, "_m"), {x, y, t, co}, Reducer::kSum, {ci},
                       {}, product);
  }

  BufferId OutputRows(BufferId product) {
    const Axis t = NewTiles(), a = New("a", m_), y = New("y", alpha_),
               co = New("co", conv_.co.extent);
    std::vector<ExprId> terms;
    for (int x = 0; x < alpha_; ++x)
      terms.push_back(LoadOf(w_, product, {Index(x), At(y), At(t), At(co)}));
    return Insert("_am", {t, a, y, co}, Choose(At(a), TransformOutput(terms)));
  }

  void Output(BufferId am) {
    ir::AtomTable& atoms = w_.atoms;
    const Index row = atoms.Mod(At(conv_.h), m_), column = atoms.Mod(At(conv_.w), m_);
    const Index tile = (At(conv_.n) * rows_ + atoms.FloorDiv(At(conv_.h), m_)) * columns_ +
                       atoms.FloorDiv(At(conv_.w), m_);
    std::vector<ExprId> terms;
    for (int y = 0; y < alpha_; ++y)
      terms.push_back(LoadOf(w_, am, {tile, row, Index(y), At(conv_.co)}));
    ir::Stage& stage = w_.stages[stage_];
    stage.reducer = Reducer::kNone;
    stage.reduce.clear();
    stage.guards.clear();
    stage.values = {Choose(column, TransformOutput(terms))};
  }

  ir::Workload w_;
  int stage_;  // the convolution's, after the stages inserted so far
  const Conv2dForm conv_;
  const int64_t m_, alpha_;
  const WinogradMatrices matrices_;
  const std::string name_;
  const DType dtype_;
  int64_t rows_ = 0, columns_ = 0, tiles_ = 0;
};

// Whether the first or the last window of an axis lies outside the image.
bool HasEmptyWindow(int64_t before, int64_t outputs, int64_t size) {
  return before <= -kKernel || outputs - 1 + before >= size;
}

}  // namespace

absl::StatusOr<ir::Workload> Winograd(const ir::Workload& workload, int stage,
                                      absl::Span<const int64_t> numbers) {
  const int64_t m = numbers[0];
  if (m != 2 && m != 4 && m != 6)
    return absl::InvalidArgumentError(
        absl::StrCat("winograd: m is ", m, "; 2, 4 or 6 are supported"));
  const absl::StatusOr<Conv2dForm> conv = MatchConv2d(workload, workload.stages[stage]);
  if (!conv.ok())
    return absl::Status(conv.status().code(), absl::StrCat("winograd: ", conv.status().message()));
  if (conv->r.extent != kKernel || conv->s.extent != kKernel) {
    return absl::FailedPreconditionError(
        absl::StrCat("winograd: the kernel is ", conv->r.extent, "x", conv->s.extent, ", not 3x3"));
  }
  const DType dtype = workload.tensors[conv->input].dtype;
  if (dtype != DType::kF32 && dtype != DType::kF64) {
    return absl::FailedPreconditionError(
        absl::StrCat("winograd: ", ir::DTypeName(dtype),
                     " is too coarse for the transforms; f32 and f64 are supported"));
  }
  // Such outputs must be 0, but the transforms would give them rounding errors from their tile.
  if (HasEmptyWindow(conv->top, conv->h.extent, conv->height) ||
      HasEmptyWindow(conv->left, conv->w.extent, conv->width)) {
    return absl::FailedPreconditionError(
        "winograd: the windows of some outputs lie in the padding as a whole");
  }
  return WinogradRewrite(workload, stage, *conv, m).Run();
}

double WinogradTolerance(const ir::Workload& workload, int stage,
                         absl::Span<const int64_t> numbers) {
  const bool f64 = workload.tensors[workload.stages[stage].tensors[0]].dtype == DType::kF64;
  return 4 * (f64 ? 0x1p-53 : 0x1p-24) * WinogradAmplification(static_cast<int>(numbers[0]));
}

}  // namespace hone::schedule
