// Operators on rows: softmax, layer norm. (oneDNN's reduction to one norm is its reference code.)

#include "tests/bench/compare/onednn/primitive.h"
#include "tests/bench/compare/onednn/primitive_desc.h"

namespace hone::compare {

using dnnl::memory;

void MakeSoftmax(const OperatorMatch& match, OneDnn& contender) {
  const memory::desc rows({match["m"], match["n"]}, contender.TypeOf(0), memory::format_tag::ab);
  const auto inference = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
  const auto chosen = MakePrimitiveDesc<dnnl::softmax_forward>(
      contender.engine(), {}, inference, dnnl::algorithm::softmax_accurate, rows, rows, 1);
#else
  const auto chosen =
      MakePrimitiveDesc<dnnl::softmax_forward>(contender.engine(), {}, inference, rows, 1);
#endif
  contender.Set(dnnl::softmax_forward(chosen),
                {{DNNL_ARG_SRC, contender.Use(0, rows)}, {DNNL_ARG_DST, contender.Use(1, rows)}});
}

void MakeLayerNorm(const OperatorMatch& match, OneDnn& contender) {
  const memory::desc rows({match["m"], match["n"]}, contender.TypeOf(0), memory::format_tag::ab);
  const memory::desc row({match["n"]}, contender.TypeOf(1), memory::format_tag::a);
  const auto inference = dnnl::prop_kind::forward_inference;
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
#if DNNL_VERSION_MAJOR >= 3
  const auto chosen = MakePrimitiveDesc<dnnl::layer_normalization_forward>(
      contender.engine(), {}, inference, rows, rows, 1e-5f, flags);
#else
  const auto chosen = MakePrimitiveDesc<dnnl::layer_normalization_forward>(
      contender.engine(), {}, inference, rows, 1e-5f, flags);
#endif
  contender.Set(dnnl::layer_normalization_forward(chosen),
                {{DNNL_ARG_SRC, contender.Use(0, rows)},
                 {DNNL_ARG_SCALE, contender.Use(1, row)},
                 {DNNL_ARG_SHIFT, contender.Use(2, row)},
                 {DNNL_ARG_DST, contender.Use(3, rows)}});
}

}  // namespace hone::compare
