
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/schedule/rewrite/conv2d_form.h"
#include "common/schedule/rewrite/edit.h"
#include "common/schedule/rewrite/rewrites.h"
#include "common/schedule/rewrite/winograd_points.h"

namespace hone::schedule {

using ir::Axis;
using ir::BufferId;
using ir::DType;
using ir::ExprId;
using ir::Index;
using ir::Op;
using ir::Reducer;

namespace {

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
