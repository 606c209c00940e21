// Operators of oneDNN 3 for peers.py. Compiled when they are first compared.

#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

namespace {

using dnnl::memory;
constexpr auto kFloat = memory::data_type::f32;

struct Operator {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;

  memory Use(const memory::desc& description, float* data) const {
    return memory(description, engine, data);
  }
  // A constant in the layout that the primitive wants.
  memory Pack(const memory::desc& plain, float* data, const memory::desc& wanted) {
    memory source = Use(plain, data);
    if (wanted == plain) return source;
    memory packed(wanted, engine);
    dnnl::reorder(source, packed).execute(stream, source, packed);
    stream.wait();
    return packed;
  }
};

// sizes: batch, m, n, k, whether B is constant. data: A, B, C.
void MakeMatmul(Operator& op, const int64_t* sizes, float* const* data) {
  const auto plain = memory::format_tag::abc;
  const memory::desc a({sizes[0], sizes[1], sizes[3]}, kFloat, plain);
  const memory::desc b({sizes[0], sizes[3], sizes[2]}, kFloat, plain);
  const memory::desc any(b.get_dims(), kFloat, memory::format_tag::any);
  const memory::desc c({sizes[0], sizes[1], sizes[2]}, kFloat, plain);
  const dnnl::matmul::primitive_desc chosen(op.engine, a, sizes[4] ? any : b, c);
  op.primitive = dnnl::matmul(chosen);
  op.arguments = {{DNNL_ARG_SRC, op.Use(a, data[0])},
                  {DNNL_ARG_WEIGHTS, op.Pack(b, data[1], chosen.weights_desc())},
                  {DNNL_ARG_DST, op.Use(c, data[2])}};
}

// sizes: n, h, w, ci, co, k, s, p, groups. data: X [n, h, w, ci], W [co, ci / groups, k, k], Y.
void MakeConvolution(Operator& op, const int64_t* sizes, float* const* data) {
  const int64_t ci = sizes[3], co = sizes[4], k = sizes[5], s = sizes[6], p = sizes[7],
                groups = sizes[8];
  const auto extent = [&](int64_t in) { return (in + 2 * p - k) / s + 1; };
  const auto nhwc = memory::format_tag::nhwc;
  const memory::desc x({sizes[0], ci, sizes[1], sizes[2]}, kFloat, nhwc);
  const memory::desc y({sizes[0], co, extent(sizes[1]), extent(sizes[2])}, kFloat, nhwc);
  const memory::dims dims = groups == 1 ? memory::dims{co, ci, k, k}
                                        : memory::dims{groups, co / groups, ci / groups, k, k};
  const memory::desc plain(dims, kFloat,
                           groups == 1 ? memory::format_tag::oihw : memory::format_tag::goihw);
  const memory::desc any(dims, kFloat, memory::format_tag::any);
  const dnnl::convolution_forward::primitive_desc chosen(
      op.engine, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, x, any, y,
      {s, s}, {p, p}, {p, p});
  op.primitive = dnnl::convolution_forward(chosen);
  op.arguments = {{DNNL_ARG_SRC, op.Use(x, data[0])},
                  {DNNL_ARG_WEIGHTS, op.Pack(plain, data[1], chosen.weights_desc())},
                  {DNNL_ARG_DST, op.Use(y, data[2])}};
}

// sizes: m, n. data: X, Y.
void MakeSoftmax(Operator& op, const int64_t* sizes, float* const* data) {
  const memory::desc rows({sizes[0], sizes[1]}, kFloat, memory::format_tag::ab);
  op.primitive = dnnl::softmax_forward({op.engine, dnnl::prop_kind::forward_inference,
                                        dnnl::algorithm::softmax_accurate, rows, rows, 1});
  op.arguments = {{DNNL_ARG_SRC, op.Use(rows, data[0])}, {DNNL_ARG_DST, op.Use(rows, data[1])}};
}

// sizes: m, n. data: X, scale, shift, Y.
void MakeLayerNorm(Operator& op, const int64_t* sizes, float* const* data) {
  const memory::desc rows({sizes[0], sizes[1]}, kFloat, memory::format_tag::ab);
  const memory::desc row({sizes[1]}, kFloat, memory::format_tag::a);
  op.primitive = dnnl::layer_normalization_forward(
      {op.engine, dnnl::prop_kind::forward_inference, rows, rows, 1e-5f,
       dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift});
  op.arguments = {{DNNL_ARG_SRC, op.Use(rows, data[0])},
                  {DNNL_ARG_SCALE, op.Use(row, data[1])},
                  {DNNL_ARG_SHIFT, op.Use(row, data[2])},
                  {DNNL_ARG_DST, op.Use(rows, data[3])}};
}

constexpr void (*kMakers[])(Operator&, const int64_t*, float* const*) = {
    MakeMatmul, MakeConvolution, MakeSoftmax, MakeLayerNorm};

}  // namespace

// Returns null if oneDNN refuses the operator.
extern "C" void* rivals_onednn_make(int maker, const int64_t* sizes, float* const* data) {
  try {
    auto op = std::make_unique<Operator>();
    kMakers[maker](*op, sizes, data);
    return op.release();
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

extern "C" void rivals_onednn_run(void* made, int calls) {
  auto& op = *static_cast<Operator*>(made);
  for (int i = 0; i < calls; ++i) op.primitive.execute(op.stream, op.arguments);
  op.stream.wait();
}
