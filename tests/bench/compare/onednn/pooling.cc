#include "tests/bench/compare/onednn/primitive.h"
#include "tests/bench/compare/onednn/primitive_desc.h"

namespace hone::compare {

using dnnl::memory;

namespace {

// Images are NHWC; the window covers both dimensions, starting at the padding.
void Make(OneDnn& contender, dnnl::algorithm algorithm, int64_t n, int64_t c,
          const memory::dims& input, const memory::dims& output, const memory::dims& kernel,
          const memory::dims& stride, const memory::dims& padding) {
  const auto nhwc = memory::format_tag::nhwc;
  const memory::desc source({n, c, input[0], input[1]}, contender.TypeOf(0), nhwc);
  const memory::desc result({n, c, output[0], output[1]}, contender.TypeOf(1), nhwc);
  const auto inference = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
  const memory::dims dilation = {0, 0};
  const auto chosen =
      MakePrimitiveDesc<dnnl::pooling_forward>(contender.engine(), {}, inference, algorithm, source,
                                               result, stride, kernel, dilation, padding, padding);
#else
  const auto chosen =
      MakePrimitiveDesc<dnnl::pooling_forward>(contender.engine(), {}, inference, algorithm, source,
                                               result, stride, kernel, padding, padding);
#endif
  contender.Set(dnnl::pooling_forward(chosen), {{DNNL_ARG_SRC, contender.Use(0, source)},
                                                {DNNL_ARG_DST, contender.Use(1, result)}});
}

}  // namespace

void MakeGlobalPooling(const OperatorMatch& match, OneDnn& contender) {
  const memory::dims input = {match["h"], match["w"]};
  Make(contender, dnnl::algorithm::pooling_avg_exclude_padding, match["n"], match["c"], input,
       /*output=*/{1, 1}, /*kernel=*/input, /*stride=*/{1, 1}, /*padding=*/{0, 0});
}

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
  Make(contender, algorithm, match["n"], match["c"], input, output, kernel, stride, padding);
}

}  // namespace hone::compare
