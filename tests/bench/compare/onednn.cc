#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "tests/bench/compare/contender.h"

namespace hone::compare {
namespace {

using dnnl::memory;

class OneDnn final : public Contender {
 public:
  OneDnn() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  std::string name() const override { return "oneDNN"; }

  absl::Status Run() override {
    try {
      primitive_.execute(stream_, arguments_);
      stream_.wait();
    } catch (const dnnl::error& error) {
      return absl::InternalError(error.what());
    }
    return absl::OkStatus();
  }

  void MakeMatmul(const memory::dims& a, const memory::dims& b, const memory::dims& c, bool relu,
                  bool pack, const Buffers& buffers) {
    const auto plain = a.size() == 3 ? memory::format_tag::abc : memory::format_tag::ab;
    const memory::desc weights(b, memory::data_type::f32, pack ? memory::format_tag::any : plain);
    const dnnl::matmul::desc description(memory::desc(a, memory::data_type::f32, plain), weights,
                                         memory::desc(c, memory::data_type::f32, plain));
    dnnl::primitive_attr attributes;
    if (relu) {
      dnnl::post_ops operations;
      operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
      attributes.set_post_ops(operations);
    }
    const dnnl::matmul::primitive_desc chosen(description, attributes, engine_);
    primitive_ = dnnl::matmul(chosen);
    Bind(chosen.src_desc(), chosen.weights_desc(), chosen.dst_desc(),
         memory::desc(b, memory::data_type::f32, plain), buffers);
  }

  void MakeConvolution(const OperatorMatch& m, const Buffers& buffers) {
    const int64_t oh = (m["h"] + 2 * m["p"] - m["k"]) / m["s"] + 1;
    const int64_t ow = (m["w"] + 2 * m["p"] - m["k"]) / m["s"] + 1;
    const memory::desc source({m["n"], m["ci"], m["h"], m["w"]}, memory::data_type::f32,
                              memory::format_tag::nhwc);
    const memory::desc result({m["n"], m["co"], oh, ow}, memory::data_type::f32,
                              memory::format_tag::nhwc);
    const memory::dims weight_dims = {m["co"], m["ci"], m["k"], m["k"]};
    const dnnl::convolution_forward::desc description(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, source,
        memory::desc(weight_dims, memory::data_type::f32, memory::format_tag::any), result,
        {m["s"], m["s"]}, {m["p"], m["p"]}, {m["p"], m["p"]});
    const dnnl::convolution_forward::primitive_desc chosen(description, engine_);
    primitive_ = dnnl::convolution_forward(chosen);
    Bind(chosen.src_desc(), chosen.weights_desc(), chosen.dst_desc(),
         memory::desc(weight_dims, memory::data_type::f32, memory::format_tag::hwio), buffers);
  }

 private:
  // Ties memory to the buffers; weights are brought into the chosen layout once, here.
  void Bind(const memory::desc& source, const memory::desc& weights, const memory::desc& result,
            const memory::desc& plain_weights, const Buffers& buffers) {
    memory given(plain_weights, engine_, buffers.at(1));
    memory used = given;
    if (weights != plain_weights) {
      used = memory(weights, engine_);
      dnnl::reorder(given, used).execute(stream_, given, used);
      stream_.wait();
    }
    arguments_ = {{DNNL_ARG_SRC, memory(source, engine_, buffers.at(0))},
                  {DNNL_ARG_WEIGHTS, used},
                  {DNNL_ARG_DST, memory(result, engine_, buffers.at(2))}};
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Contender>> MakeOneDnn(const OperatorMatch& match,
                                                      const Buffers& buffers) {
  try {
    auto kernel = std::make_unique<OneDnn>();
    if (match.op == "conv2d") {
      kernel->MakeConvolution(match, buffers);
    } else if (match.op == "batch_matmul") {
      kernel->MakeMatmul({match["b"], match["m"], match["k"]}, {match["b"], match["k"], match["n"]},
                         {match["b"], match["m"], match["n"]}, false, false, buffers);
    } else {
      const bool dense = match.op == "dense_relu";  // whose weights are constant
      kernel->MakeMatmul({match["m"], match["k"]}, {match["k"], match["n"]},
                         {match["m"], match["n"]}, dense, dense, buffers);
    }
    return kernel;
  } catch (const dnnl::error& error) {
    return absl::UnimplementedError(absl::StrCat("oneDNN: ", error.what()));
  }
}

}  // namespace hone::compare
