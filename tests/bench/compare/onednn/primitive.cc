#include "tests/bench/compare/onednn/primitive.h"

#include "absl/strings/str_cat.h"

namespace hone::compare {
namespace {

using Maker = void (*)(const OperatorMatch&, OneDnn&);
constexpr std::pair<const char*, Maker> kMakers[] = {
    {"avg_pool2d", MakePooling},           {"batch_matmul", MakeMatmul},
    {"conv2d", MakeConvolution},           {"dense_relu", MakeMatmul},
    {"depthwise_conv2d", MakeConvolution}, {"global_avg_pool", MakeGlobalPooling},
    {"layer_norm", MakeLayerNorm},         {"matmul", MakeMatmul},
    {"max_pool2d", MakePooling},           {"quantized_dense", MakeMatmul},
    {"quantized_matmul", MakeMatmul},      {"softmax", MakeSoftmax},
};

}  // namespace

absl::Status OneDnn::Run() {
  try {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  } catch (const dnnl::error& error) {
    return absl::InternalError(error.what());
  }
  return absl::OkStatus();
}

dnnl::memory OneDnn::Pack(int index, const dnnl::memory::desc& plain,
                          const dnnl::memory::desc& wanted) {
  dnnl::memory given = Use(index, plain);
  if (wanted == plain) return given;
  dnnl::memory packed(wanted, engine_);
  dnnl::reorder(given, packed).execute(stream_, given, packed);
  stream_.wait();
  return packed;
}

dnnl::memory::data_type OneDnn::TypeOf(int index) const {
  switch (buffers_.dtype(index)) {
    case ir::DType::kF32:
      return dnnl::memory::data_type::f32;
    case ir::DType::kBF16:
      return dnnl::memory::data_type::bf16;
    case ir::DType::kU8:
      return dnnl::memory::data_type::u8;
    case ir::DType::kI8:
      return dnnl::memory::data_type::s8;
    case ir::DType::kI32:
      return dnnl::memory::data_type::s32;
    default:
      throw dnnl::error(dnnl_unimplemented, "no such dtype");
  }
}

absl::StatusOr<std::unique_ptr<Contender>> MakeOneDnn(const OperatorMatch& match,
                                                      const Buffers& buffers) {
  for (const auto& [op, make] : kMakers) {
    if (match.op != op) continue;
    try {
      auto contender = std::make_unique<OneDnn>(buffers);
      make(match, *contender);
      return contender;
    } catch (const dnnl::error& error) {
      return absl::UnimplementedError(absl::StrCat("oneDNN: ", error.what()));
    }
  }
  return absl::UnimplementedError(absl::StrCat("oneDNN has no ", match.op));
}

}  // namespace hone::compare
