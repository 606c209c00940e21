// Operators on rows: softmax, layer norm. (oneDNN's reduction to one norm is its reference code.)

#include "tests/bench/compare/onednn/primitive.h"

namespace hone::compare {

using dnnl::memory;

void MakeSoftmax(const OperatorMatch& match, OneDnn& contender) {
  const memory::desc rows({match["m"], match["n"]}, contender.TypeOf(0), memory::format_tag::ab);
  const dnnl::softmax_forward::desc description(dnnl::prop_kind::forward_inference, rows, 1);
  contender.Set(
      dnnl::softmax_forward(dnnl::softmax_forward::primitive_desc(description, contender.engine())),
      {{DNNL_ARG_SRC, contender.Use(0, rows)}, {DNNL_ARG_DST, contender.Use(1, rows)}});
}

void MakeLayerNorm(const OperatorMatch& match, OneDnn& contender) {
  const memory::desc rows({match["m"], match["n"]}, contender.TypeOf(0), memory::format_tag::ab);
  const memory::desc row({match["n"]}, contender.TypeOf(1), memory::format_tag::a);
  const dnnl::layer_normalization_forward::desc description(
      dnnl::prop_kind::forward_inference, rows, 1e-5f,
      dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift);
  contender.Set(dnnl::layer_normalization_forward(dnnl::layer_normalization_forward::primitive_desc(
                    description, contender.engine())),
                {{DNNL_ARG_SRC, contender.Use(0, rows)},
                 {DNNL_ARG_SCALE, contender.Use(1, row)},
                 {DNNL_ARG_SHIFT, contender.Use(2, row)},
                 {DNNL_ARG_DST, contender.Use(3, rows)}});
}

}  // namespace hone::compare
