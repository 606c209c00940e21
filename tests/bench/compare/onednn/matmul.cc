#include "tests/bench/compare/onednn/primitive.h"
#include "tests/bench/compare/onednn/primitive_desc.h"

namespace hone::compare {

using dnnl::memory;

void MakeMatmul(const OperatorMatch& match, OneDnn& contender) {
  const int64_t m = match["m"], n = match["n"], k = match["k"];
  const bool batched = match.op == "batch_matmul";
  const bool relu = match.op == "dense_relu";
  const bool constant = relu || match.op == "quantized_dense";
  const auto dims = [&](int64_t rows, int64_t columns) -> memory::dims {
    if (batched) return {match["b"], rows, columns};
    return {rows, columns};
  };
  const auto plain = batched ? memory::format_tag::abc : memory::format_tag::ab;
  const memory::desc a(dims(m, k), contender.TypeOf(0), plain);
  const memory::desc b(dims(k, n), contender.TypeOf(1), plain);
  const memory::desc wanted(dims(k, n), contender.TypeOf(1),
                            constant ? memory::format_tag::any : plain);
  const memory::desc c(dims(m, n), contender.TypeOf(2), plain);
  dnnl::primitive_attr attributes;
  if (relu) {
    dnnl::post_ops operations;
#if DNNL_VERSION_MAJOR >= 3
    operations.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
#else
    operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
#endif
    attributes.set_post_ops(operations);
  }
  const auto chosen = MakePrimitiveDesc<dnnl::matmul>(contender.engine(), attributes, a, wanted, c);
  contender.Set(dnnl::matmul(chosen),
                {{DNNL_ARG_SRC, contender.Use(0, a)},
                 {DNNL_ARG_WEIGHTS, contender.Pack(1, b, chosen.weights_desc())},
                 {DNNL_ARG_DST, contender.Use(2, c)}});
}

}  // namespace hone::compare
