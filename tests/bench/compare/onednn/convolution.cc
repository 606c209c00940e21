#include "tests/bench/compare/onednn/primitive.h"
#include "tests/bench/compare/onednn/primitive_desc.h"

namespace hone::compare {

using dnnl::memory;

void MakeConvolution(const OperatorMatch& match, OneDnn& contender) {
  const bool depthwise = match.op == "depthwise_conv2d";
  const int64_t ci = match[depthwise ? "c" : "ci"], co = match[depthwise ? "c" : "co"];
  const int64_t groups = depthwise ? ci : match["groups"];
  const memory::dims kernel = {match["kh"], match["kw"]}, stride = {match["sh"], match["sw"]};
  const memory::dims padding = {match["ph"], match["pw"]};
  const memory::dims dilation = {match["dil"] - 1,
                                 match["dil"] - 1};  // oneDNN counts dilation from 0
  const memory::dims input = {match["h"], match["w"]};
  memory::dims output;
  for (int d = 0; d < 2; ++d) {
    const int64_t reach = (kernel[d] - 1) * (dilation[d] + 1) + 1;
    output.push_back((input[d] + 2 * padding[d] - reach) / stride[d] + 1);
  }
  const auto nhwc = memory::format_tag::nhwc;
  const memory::desc source({match["n"], ci, input[0], input[1]}, contender.TypeOf(0), nhwc);
  const memory::desc result({match["n"], co, output[0], output[1]}, contender.TypeOf(2), nhwc);
  // The workload's weights are kh kw ci/groups co, with the groups consecutive in co.
  const memory::data_type type = contender.TypeOf(1);
  const int64_t gi = ci / groups, go = co / groups;
  memory::dims dims = {co, ci, kernel[0], kernel[1]};
  memory::dims strides = {1, co, kernel[1] * ci * co, ci * co};
  if (groups > 1) {
    dims = {groups, go, gi, kernel[0], kernel[1]};
    strides = {go, 1, co, kernel[1] * gi * co, gi * co};
  }
  const memory::desc plain(dims, type, strides);
  const memory::desc any(dims, type, memory::format_tag::any);
  const auto chosen = MakePrimitiveDesc<dnnl::convolution_forward>(
      contender.engine(), {}, dnnl::prop_kind::forward_inference,
      dnnl::algorithm::convolution_direct, source, any, result, stride, dilation, padding, padding);
  contender.Set(dnnl::convolution_forward(chosen),
                {{DNNL_ARG_SRC, contender.Use(0, source)},
                 {DNNL_ARG_WEIGHTS, contender.Pack(1, plain, chosen.weights_desc())},
                 {DNNL_ARG_DST, contender.Use(2, result)}});
}

}  // namespace hone::compare
