#include "common/operator/families.h"
#include "common/operator/formula.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;

namespace {

absl::StatusOr<ir::Workload> Transpose(const Arguments& arguments) {
  OpBuilder b("transpose", arguments);
  const BufferId x = b.Input("X", {arguments["m"], arguments["n"]});
  const Axis j = b.NewAxis("j", arguments["n"]), i = b.NewAxis("i", arguments["m"]);
  return b.Build({b.Map("Y", {j, i}, b.At(x, {i, j}))});
}

absl::StatusOr<ir::Workload> BatchTranspose(const Arguments& arguments) {
  OpBuilder b("batch_transpose", arguments);
  const BufferId x = b.Input("X", {arguments["b"], arguments["m"], arguments["n"]});
  const Axis z = b.NewAxis("b", arguments["b"]), j = b.NewAxis("j", arguments["n"]),
             i = b.NewAxis("i", arguments["m"]);
  return b.Build({b.Map("Y", {z, j, i}, b.At(x, {z, i, j}))});
}

}  // namespace

std::vector<OperatorInfo> TranspositionOperators() {
  return {
      {.name = "transpose",
       .meaning = "Y[n, m] = X[m, n]",
       .keys = {{"m", "rows of X"}, {"n", "columns of X"}},
       .inputs = {{"X", "m n"}},
       .outputs = {{"Y", "n m"}},
       .build = Transpose},
      {.name = "batch_transpose",
       .meaning = "Y[b, n, m] = X[b, m, n]; from NHWC to NCHW with m = h*w, n = c",
       .keys = {{"b", "batch"}, {"m", "rows of X"}, {"n", "columns of X"}},
       .inputs = {{"X", "b m n"}},
       .outputs = {{"Y", "b n m"}},
       .build = BatchTranspose},
  };
}

}  // namespace hone::op
