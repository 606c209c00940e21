#include "common/operator/operator.h"

namespace hone::op {

using ir::Index;
using ir::Op;
using ir::Reducer;

absl::StatusOr<ir::Workload> Matmul(const Arguments& arguments) {
  ir::WorkloadBuilder builder("matmul");
  const int64_t m = arguments["m"], n = arguments["n"], k = arguments["k"];
  const auto a = builder.Input("A", arguments.dtype, {m, k});
  const auto b = builder.Input("B", arguments.dtype, {k, n});
  const auto i = builder.NewAxis("i", m), j = builder.NewAxis("j", n), r = builder.NewAxis("k", k);
  const auto product = builder.pool().Binary(Op::kMul, builder.Load(a, {Index::Of(i.var), Index::Of(r.var)}),
                                             builder.Load(b, {Index::Of(r.var), Index::Of(j.var)}));
  builder.Output(builder.Stage("C", {i, j}, Reducer::kSum, {r}, {}, product));
  return std::move(builder).Build();
}

absl::StatusOr<ir::Workload> BatchMatmul(const Arguments& arguments) {
  ir::WorkloadBuilder builder("batch_matmul");
  const int64_t batch = arguments["b"], m = arguments["m"], n = arguments["n"], k = arguments["k"];
  const auto a = builder.Input("A", arguments.dtype, {batch, m, k});
  const auto b = builder.Input("B", arguments.dtype, {batch, k, n});
  const auto z = builder.NewAxis("b", batch), i = builder.NewAxis("i", m), j = builder.NewAxis("j", n);
  const auto r = builder.NewAxis("k", k);
  const auto product =
      builder.pool().Binary(Op::kMul, builder.Load(a, {Index::Of(z.var), Index::Of(i.var), Index::Of(r.var)}),
                            builder.Load(b, {Index::Of(z.var), Index::Of(r.var), Index::Of(j.var)}));
  builder.Output(builder.Stage("C", {z, i, j}, Reducer::kSum, {r}, {}, product));
  return std::move(builder).Build();
}

absl::StatusOr<ir::Workload> DenseRelu(const Arguments& arguments) {
  ir::WorkloadBuilder builder("dense_relu");
  const int64_t m = arguments["m"], n = arguments["n"], k = arguments["k"];
  const auto a = builder.Input("A", arguments.dtype, {m, k});
  const auto w = builder.Input("W", arguments.dtype, {k, n}, /*constant=*/true);
  const auto i = builder.NewAxis("i", m), j = builder.NewAxis("j", n), r = builder.NewAxis("k", k);
  const auto product = builder.pool().Binary(Op::kMul, builder.Load(a, {Index::Of(i.var), Index::Of(r.var)}),
                                             builder.Load(w, {Index::Of(r.var), Index::Of(j.var)}));
  const auto c = builder.Stage("C", {i, j}, Reducer::kSum, {r}, {}, product);
  const auto i2 = builder.NewAxis("i", m), j2 = builder.NewAxis("j", n);
  const auto relu = builder.pool().Binary(Op::kMax, builder.Load(c, {Index::Of(i2.var), Index::Of(j2.var)}),
                                          builder.pool().Const(arguments.dtype, 0));
  builder.Output(builder.Map("D", {i2, j2}, relu));
  return std::move(builder).Build();
}

}  // namespace hone::op
