#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/operator/families.h"
#include "common/operator/formula.h"
#include "common/operator/window.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;
using ir::Index;

namespace {

// One dimension of a transposed convolution, y[o] = Σ x[i]·w[r] over i·s + r − p = o.
//
// Only every s-th tap reads an input. A sum over all taps with a guard (o + p − r) mod s = 0 would
// do s times the work, or need guards that loop bounds cannot express. Instead, the output is
// divided into phases, o = s·q + a, with the taps r = (a + p) mod s + s·t. The input is then i = q
// + (a + p) / s − t: everything is affine in the loops over q and t, and no tap is wasted. The
// weights depend on the phase but not on q, so q forms the rows of a matrix product.
struct Phases {
  std::string dimension;
  int64_t extent, kernel, stride, padding;

  int64_t outputs() const { return (extent - 1) * stride - 2 * padding + kernel; }
  int64_t rounds() const { return ir::CeilDivInt(outputs(), stride); }
  int64_t taps() const { return ir::CeilDivInt(kernel, stride); }
  Index Input(OpBuilder& b, const Axis& q, const Axis& phase, const Axis& tap) const {
    return Index::Of(q.var) + b.atoms().FloorDiv(Index::Of(phase.var) + padding, stride) -
           Index::Of(tap.var);
  }
  Index Tap(OpBuilder& b, const Axis& phase, const Axis& tap) const {
    return b.atoms().Mod(Index::Of(phase.var) + padding, stride) + Index::Of(tap.var, stride);
  }
  void Guard(OpBuilder& b, const Axis& q, const Axis& phase, const Axis& tap,
             std::vector<ir::Condition>& guards) const {
    guards.push_back({Input(b, q, phase, tap), extent});
    // The last step over taps, and over outputs, may be partial.
    if (kernel % stride != 0) guards.push_back({Tap(b, phase, tap), kernel});
    if (outputs() % stride != 0)
      guards.push_back({Index::Of(q.var, stride) + Index::Of(phase.var), outputs()});
  }
};

absl::StatusOr<std::vector<Phases>> AllPhases(const Arguments& arguments) {
  std::vector<Phases> all;
  for (const std::string dimension : {"h", "w"}) {
    Phases p{dimension, arguments[dimension], arguments["k" + dimension],
             arguments["s" + dimension], arguments["p" + dimension]};
    if (p.extent > 1 && p.stride > ir::kMaxElements / (p.extent - 1)) {
      return absl::InvalidArgumentError(absl::StrCat("conv2d_transpose: an output with ", p.extent,
                                                     " strides of ", p.stride, " has more than ",
                                                     ir::kMaxElements, " elements"));
    }
    if (p.outputs() < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "conv2d_transpose: padding ", p.padding, " leaves nothing of the output along ",
          dimension, " (", p.outputs() + 2 * p.padding, " without padding)"));
    }
    all.push_back(std::move(p));
  }
  return all;
}

absl::StatusOr<ir::Workload> Conv2dTranspose(const Arguments& arguments) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Phases> phases, AllPhases(arguments));
  const Phases &rows = phases[0], &columns = phases[1];
  OpBuilder b("conv2d_transpose", arguments);
  const int64_t n = arguments["n"], ci = arguments["ci"], co = arguments["co"];
  const BufferId x = b.Input("X", {n, rows.extent, columns.extent, ci});
  const BufferId weight = b.Weight("W", {rows.kernel, columns.kernel, ci, co});

  const Axis an = b.NewAxis("n", n), qh = b.NewAxis("qh", rows.rounds()),
             ah = b.NewAxis("ah", rows.stride);
  const Axis qw = b.NewAxis("qw", columns.rounds()), aw = b.NewAxis("aw", columns.stride),
             aco = b.NewAxis("co", co);
  const Axis th = b.NewAxis("th", rows.taps()), tw = b.NewAxis("tw", columns.taps()),
             aci = b.NewAxis("ci", ci);
  std::vector<ir::Condition> guards;
  rows.Guard(b, qh, ah, th, guards);
  columns.Guard(b, qw, aw, tw, guards);
  const Term product = b.At(x, {an, rows.Input(b, qh, ah, th), columns.Input(b, qw, aw, tw), aci}) *
                       b.At(weight, {rows.Tap(b, ah, th), columns.Tap(b, aw, tw), aci, aco});
  const BufferId sums =
      b.Sum("Phases", {an, qh, ah, qw, aw, aco}, {th, tw, aci}, product, std::move(guards));

  const Axis yn = b.NewAxis("n", n), h = b.NewAxis("h", rows.outputs()),
             w = b.NewAxis("w", columns.outputs()), yco = b.NewAxis("co", co);
  const auto round = [&](const Axis& axis, int64_t stride) {
    return b.atoms().FloorDiv(Index::Of(axis.var), stride);
  };
  const auto phase = [&](const Axis& axis, int64_t stride) {
    return b.atoms().Mod(Index::Of(axis.var), stride);
  };
  return b.Build({b.Map("Y", {yn, h, w, yco},
                        b.At(sums, {yn, round(h, rows.stride), phase(h, rows.stride),
                                    round(w, columns.stride), phase(w, columns.stride), yco}))});
}

}  // namespace

std::vector<OperatorInfo> TransposedConvolutionOperators() {
  std::vector<KeyInfo> keys = {{"n", "batch"},
                               {"h", "input height"},
                               {"w", "input width"},
                               {"ci", "input channels"},
                               {"co", "output channels"}};
  const std::vector<KeyInfo> window = WindowKeys("hw");
  keys.insert(keys.end(), window.begin(), window.end());
  return {{.name = "conv2d_transpose",
           .meaning = "Y[n, h*sh + r - ph, w*sw + s - pw, co] += X[n, h, w, ci] * W[r, s, ci, co]; "
                      "oh = (h-1)*sh - 2ph + kh",
           .keys = std::move(keys),
           .inputs = {{"X", "n h w ci"}, {"W", "kh kw ci co", /*constant=*/true}},
           .outputs = {{"Y", "n oh ow co"}},
           .build = Conv2dTranspose}};
}

}  // namespace hone::op
