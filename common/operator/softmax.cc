#include "common/operator/families.h"
#include "common/operator/formula.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;

namespace {

// Four stages. The exponentials are a separate stage, so that a schedule can store or recompute
// them.
absl::StatusOr<ir::Workload> Softmax(const Arguments& arguments) {
  OpBuilder b("softmax", arguments);
  const int64_t m = arguments["m"], n = arguments["n"];
  const BufferId x = b.Input("X", {m, n});
  const Axis mi = b.NewAxis("i", m), mk = b.NewAxis("k", n);
  const BufferId max = b.Reduce("Max", {mi}, ir::Reducer::kMax, {mk}, b.At(x, {mi, mk}));
  const Axis ei = b.NewAxis("i", m), ej = b.NewAxis("j", n);
  const BufferId exp = b.Map("Exp", {ei, ej}, Exp(b.At(x, {ei, ej}) - b.At(max, {ei})));
  const Axis si = b.NewAxis("i", m), sk = b.NewAxis("k", n);
  const BufferId sum = b.Sum("Sum", {si}, {sk}, b.At(exp, {si, sk}));
  const Axis i = b.NewAxis("i", m), j = b.NewAxis("j", n);
  return b.Build({b.Map("Y", {i, j}, b.At(exp, {i, j}) / b.At(sum, {i}))});
}

}  // namespace

std::vector<OperatorInfo> SoftmaxOperators() {
  return {{.name = "softmax",
           .meaning = "Y[m, n] = exp(X[m, n] - max of the row) / sum of these over the row",
           .keys = {{"m", "rows"}, {"n", "elements of a row"}},
           .inputs = {{"X", "m n"}},
           .outputs = {{"Y", "m n"}},
           .types = Types::kFloats,
           .build = Softmax}};
}

}  // namespace hone::op
