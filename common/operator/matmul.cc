#include "common/operator/families.h"
#include "common/operator/formula.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;

namespace {

absl::StatusOr<ir::Workload> Matmul(const Arguments& arguments) {
  OpBuilder builder("matmul", arguments);
  const int64_t m = arguments["m"], n = arguments["n"], k = arguments["k"];
  const BufferId a = builder.Input("A", {m, k}), b = builder.Input("B", {k, n});
  const Axis i = builder.NewAxis("i", m), j = builder.NewAxis("j", n), r = builder.NewAxis("k", k);
  return builder.Build(
      {builder.Sum("C", {i, j}, {r}, builder.At(a, {i, r}) * builder.At(b, {r, j}))});
}

absl::StatusOr<ir::Workload> BatchMatmul(const Arguments& arguments) {
  OpBuilder builder("batch_matmul", arguments);
  const int64_t batch = arguments["b"], m = arguments["m"], n = arguments["n"], k = arguments["k"];
  const BufferId a = builder.Input("A", {batch, m, k}), b = builder.Input("B", {batch, k, n});
  const Axis z = builder.NewAxis("b", batch), i = builder.NewAxis("i", m),
             j = builder.NewAxis("j", n), r = builder.NewAxis("k", k);
  return builder.Build(
      {builder.Sum("C", {z, i, j}, {r}, builder.At(a, {z, i, r}) * builder.At(b, {z, r, j}))});
}

// The scores of an attention layer whose heads are adjacent in memory. The transposition is in the
// indices; the schedule decides whether and where to copy (packing).
absl::StatusOr<ir::Workload> TransposeBatchMatmul(const Arguments& arguments) {
  OpBuilder builder("transpose_batch_matmul", arguments);
  const int64_t batch = arguments["b"], s = arguments["s"], h = arguments["h"], d = arguments["d"];
  const BufferId a = builder.Input("A", {batch, s, h, d}), b = builder.Input("B", {batch, s, h, d});
  const Axis z = builder.NewAxis("b", batch), head = builder.NewAxis("h", h);
  const Axis i = builder.NewAxis("i", s), j = builder.NewAxis("j", s), r = builder.NewAxis("d", d);
  return builder.Build({builder.Sum(
      "C", {z, head, i, j}, {r}, builder.At(a, {z, i, head, r}) * builder.At(b, {z, j, head, r}))});
}

}  // namespace

std::vector<OperatorInfo> MatmulOperators() {
  return {
      {.name = "matmul",
       .meaning = "C[m, n] = A[m, k] x B[k, n]",
       .keys = {{"m", "rows of A and C"},
                {"n", "columns of B and C"},
                {"k", "columns of A, rows of B"}},
       .inputs = {{"A", "m k"}, {"B", "k n"}},
       .outputs = {{"C", "m n"}},
       .build = Matmul},
      {.name = "batch_matmul",
       .meaning = "C[b, m, n] = A[b, m, k] x B[b, k, n]",
       .keys = {{"b", "batch"},
                {"m", "rows of A and C"},
                {"n", "columns of B and C"},
                {"k", "columns of A, rows of B"}},
       .inputs = {{"A", "b m k"}, {"B", "b k n"}},
       .outputs = {{"C", "b m n"}},
       .build = BatchMatmul},
      {.name = "transpose_batch_matmul",
       .meaning =
           "C[b, h, i, j] = sum over d of A[b, i, h, d] * B[b, j, h, d]: the scores of attention",
       .keys = {{"b", "batch"},
                {"s", "length of the sequence"},
                {"h", "heads"},
                {"d", "elements of a head"}},
       .inputs = {{"A", "b s h d"}, {"B", "b s h d"}},
       .outputs = {{"C", "b h s s"}},
       .build = TransposeBatchMatmul},
  };
}

}  // namespace hone::op
