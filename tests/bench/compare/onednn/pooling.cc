#include "tests/bench/compare/onednn/primitive.h"

namespace hone::compare {

using dnnl::memory;

void MakePooling(const OperatorMatch& match, OneDnn& contender) {
  dnnl::algorithm algorithm = dnnl::algorithm::pooling_max;
  if (match.op == "avg_pool2d") {
    algorithm = match["pad_counts"] == 1 ? dnnl::algorithm::pooling_avg_include_padding
                                         : dnnl::algorithm::pooling_avg_exclude_padding;
  }
  const memory::dims kernel = {match["kh"], match["kw"]}, stride = {match["sh"], match["sw"]};
  const memory::dims padding = {match["ph"], match["pw"]}, input = {match["h"], match["w"]};
  memory::dims output;
  for (int d = 0; d < 2; ++d)
    output.push_back((input[d] + 2 * padding[d] - kernel[d]) / stride[d] + 1);
  const auto nhwc = memory::format_tag::nhwc;
  const memory::desc source({match["n"], match["c"], input[0], input[1]}, contender.TypeOf(0),
                            nhwc);
  const memory::desc result({match["n"], match["c"], output[0], output[1]}, contender.TypeOf(1),
                            nhwc);
  const dnnl::pooling_forward::desc description(dnnl::prop_kind::forward_inference, algorithm,
                                                source, result, stride, kernel, padding, padding);
  contender.Set(
      dnnl::pooling_forward(dnnl::pooling_forward::primitive_desc(description, contender.engine())),
      {{DNNL_ARG_SRC, contender.Use(0, source)}, {DNNL_ARG_DST, contender.Use(1, result)}});
}

}  // namespace hone::compare
