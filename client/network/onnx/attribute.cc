#include "client/network/onnx/attribute.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/network/onnx/supported_operators.h"
#include "client/network/onnx/tensor_proto.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using Proto = ::onnx::AttributeProto;

// The attributes that ONNX defines for operators, from opset 7 on. "a>=13" exists from opset 13 on,
// "a<13" before it.
struct OperatorAttributes {
  absl::string_view attributes, operators;
};
constexpr OperatorAttributes kOperatorAttributes[] = {
    {"",
     "Abs Acos Acosh Add And Asin Asinh Atan Atanh Ceil Cos Cosh Div "
     "DynamicQuantizeLinear Equal Erf Exp Expand Floor GlobalAveragePool GlobalMaxPool "
     "Greater GreaterOrEqual HardSwish Identity IsNaN Less LessOrEqual Log MatMul "
     "MatMulInteger Max Mean Min Mish Mul Neg Not Or PRelu Pow QLinearMatMul Range "
     "Reciprocal Relu Round Sigmoid Sign Sin Sinh Size Softplus Softsign Sqrt Sub Sum "
     "Tan Tanh Tile Where Xor"},
    {"axis keepdims select_last_index>=12", "ArgMax ArgMin"},
    {"is_causal kv_num_heads left_window_size>=25 q_num_heads qk_matmul_output_mode "
     "right_window_size>=25 scale softcap softmax_precision",
     "Attention"},
    {"auto_pad ceil_mode>=10 count_include_pad dilations>=19 kernel_shape pads strides",
     "AveragePool"},
    {"epsilon momentum spatial<9 training_mode>=14", "BatchNormalization"},
    {"direction", "BitShift"},
    {"round_mode>=24 saturate>=19 to", "Cast"},
    {"round_mode>=24 saturate>=19", "CastLike"},
    {"alpha", "Celu Elu LeakyRelu Swish ThresholdedRelu com.microsoft.QuickGelu"},
    {"max<11 min<11", "Clip"},
    {"axis", "Concat Flatten Gather GatherElements Hardmax LogSoftmax OneHot Scatter Softmax"},
    {"sparse_value>=11 value value_float>=12 value_floats>=12 value_int>=12 "
     "value_ints>=12 value_string>=12 value_strings>=12",
     "Constant"},
    {"value", "ConstantOfShape"},
    {"auto_pad dilations group kernel_shape pads strides", "Conv ConvInteger QLinearConv"},
    {"auto_pad dilations group kernel_shape output_padding output_shape pads strides",
     "ConvTranspose"},
    {"exclusive reverse", "CumSum"},
    {"blocksize mode>=11", "DepthToSpace"},
    {"axis>=13 block_size>=21 output_dtype>=23", "DequantizeLinear"},
    {"ratio<12 seed>=12", "Dropout"},
    {"equation", "Einsum"},
    {"dtype k", "EyeLike"},
    {"activation_alpha activation_beta activations clip direction hidden_size "
     "layout>=14 linear_before_reset",
     "GRU"},
    {"batch_dims>=12", "GatherND"},
    {"approximate", "Gelu"},
    {"alpha beta transA transB", "Gemm"},
    {"epsilon num_groups stash_type>=21", "GroupNormalization"},
    {"alpha beta", "HardSigmoid"},
    {"epsilon", "InstanceNormalization"},
    {"detect_negative detect_positive", "IsInf"},
    {"alpha beta bias size", "LRN"},
    {"activation_alpha activation_beta activations clip direction hidden_size "
     "input_forget layout>=14",
     "LSTM"},
    {"axis epsilon stash_type",
     "LayerNormalization RMSNormalization SimplifiedLayerNormalization "
     "com.microsoft.SimplifiedLayerNormalization"},
    {"axis p", "LpNormalization"},
    {"auto_pad ceil_mode>=10 dilations>=10 kernel_shape pads storage_order>=8 strides", "MaxPool"},
    {"fmod", "Mod"},
    {"mode pads<11 value<11", "Pad"},
    {"axis>=13 block_size>=21 output_dtype>=21 precision>=23 saturate>=19", "QuantizeLinear"},
    {"activation_alpha activation_beta activations clip direction hidden_size "
     "layout>=14",
     "RNN"},
    {"axes<18 keepdims noop_with_empty_axes>=18",
     "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
     "ReduceProd ReduceSumSquare"},
    {"axes<13 keepdims noop_with_empty_axes>=13", "ReduceSum"},
    {"allowzero>=14", "Reshape"},
    {"antialias>=18 axes>=18 coordinate_transformation_mode>=11 cubic_coeff_a>=11 "
     "exclude_outside>=11 extrapolation_value>=11 keep_aspect_ratio_policy>=18 mode "
     "nearest_mode>=11",
     "Resize"},
    {"batch_axis time_axis", "ReverseSequence"},
    {"interleaved num_heads rotary_embedding_dim", "RotaryEmbedding"},
    {"axis reduction>=16", "ScatterElements"},
    {"reduction>=16", "ScatterND"},
    {"alpha gamma", "Selu"},
    {"end>=15 start>=15", "Shape"},
    {"bias lambd", "Shrink"},
    {"axes<10 ends<10 starts<10", "Slice"},
    {"blocksize", "SpaceToDepth"},
    {"axis num_outputs>=18 split<13", "Split"},
    {"axes<13", "Squeeze Unsqueeze"},
    {"axis mode", "TensorScatter"},
    {"axis k<10 largest>=11 sorted>=11", "TopK"},
    {"perm", "Transpose"},
    {"upper", "Trilu"},
    {"mode scales", "Upsample"},
    {"", "com.microsoft.BiasGelu com.microsoft.FastGelu com.microsoft.Gelu"},
    {"activation activation_alpha activation_beta activation_gamma alpha beta transA transB",
     "com.microsoft.FusedGemm"},
    {"alpha transA transB transBatchA transBatchB", "com.microsoft.FusedMatMul"},
    {"do_rotary k_quant_type kv_cache_bit_width kv_num_heads local_window_size num_heads qk_output "
     "rotary_interleaved scale smooth_softmax softcap v_quant_type",
     "com.microsoft.GroupQueryAttention"},
    {"K N accuracy_level bits block_size weight_prepacked", "com.microsoft.MatMulNBits"},
    {"mask_filter_value num_heads scale unidirectional", "com.microsoft.MultiHeadAttention"},
    {"interleaved is_packed_batching num_heads rotary_embedding_dim scale",
     "com.microsoft.RotaryEmbedding"},
    {"epsilon",
     "com.microsoft.SkipLayerNormalization com.microsoft.SkipSimplifiedLayerNormalization"},
};

// An attribute of an operator, and the opsets that have it.
struct KnownAttribute {
  absl::string_view name;
  int64_t first = 0, end = std::numeric_limits<int64_t>::max();

  static KnownAttribute Of(absl::string_view text) {
    const size_t name_end = std::min(text.size(), text.find_first_of("<>"));
    KnownAttribute known{text.substr(0, name_end)};
    absl::string_view number = text.substr(name_end);
    if (absl::ConsumePrefix(&number, ">=")) known.first = NumberOf(number);
    if (absl::ConsumePrefix(&number, "<")) known.end = NumberOf(number);
    return known;
  }

  static int64_t NumberOf(absl::string_view text) {
    int64_t number = 0;
    return absl::SimpleAtoi(text, &number) ? number : 0;
  }
};

using KnownAttributes = std::map<absl::string_view, std::vector<KnownAttribute>>;

const KnownAttributes& AllKnownAttributes() {
  static const auto* const all = [] {
    auto* const known = new KnownAttributes;
    for (const OperatorAttributes& row : kOperatorAttributes) {
      std::vector<KnownAttribute> attributes;
      for (const absl::string_view text : absl::StrSplit(row.attributes, ' ', absl::SkipEmpty())) {
        attributes.push_back(KnownAttribute::Of(text));
      }
      for (const absl::string_view op : absl::StrSplit(row.operators, ' '))
        (*known)[op] = attributes;
    }
    return known;
  }();
  return *all;
}

absl::Status Read(const Proto& proto, ExternalData& files, Attributes& attributes) {
  graph::Attribute& plain = attributes.plain[proto.name()];
  switch (proto.type()) {
    case Proto::INT:
      plain = proto.i();
      return absl::OkStatus();
    case Proto::FLOAT:
      plain = static_cast<double>(proto.f());
      return absl::OkStatus();
    case Proto::STRING:
      plain = proto.s();
      return absl::OkStatus();
    case Proto::INTS:
      plain = std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
      return absl::OkStatus();
    case Proto::FLOATS:
      plain = std::vector<double>(proto.floats().begin(), proto.floats().end());
      return absl::OkStatus();
    case Proto::STRINGS:
      plain = std::vector<std::string>(proto.strings().begin(), proto.strings().end());
      return absl::OkStatus();
    case Proto::TENSOR: {
      attributes.plain.erase(proto.name());
      HONE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(proto.t(), files));
      attributes.tensors.emplace(proto.name(), std::move(tensor));
      return absl::OkStatus();
    }
    case Proto::GRAPH:
      attributes.plain.erase(proto.name());
      attributes.graphs[proto.name()] = &proto.g();
      return absl::OkStatus();
    case Proto::GRAPHS:
      return absl::UnimplementedError("is a list of graphs, which is not supported");
    case Proto::TYPE_PROTO:  // the type of an Optional without content, which has no use
      attributes.plain.erase(proto.name());
      return absl::OkStatus();
    case Proto::SPARSE_TENSOR:
    case Proto::SPARSE_TENSORS:
      return absl::UnimplementedError("is a sparse tensor, which is not supported");
    default:
      return absl::UnimplementedError("has a kind that is not supported");
  }
}

}  // namespace

absl::StatusOr<Attributes> ReadAttributes(const ::onnx::NodeProto& node, ExternalData& files) {
  Attributes attributes;
  for (const Proto& proto : node.attribute()) {
    const bool twice = attributes.plain.contains(proto.name()) ||
                       attributes.tensors.contains(proto.name()) ||
                       attributes.graphs.contains(proto.name());
    absl::Status status;
    if (twice) {
      status = absl::InvalidArgumentError("is given twice");
    } else if (!proto.ref_attr_name().empty()) {
      status = absl::InvalidArgumentError("refers to an attribute of a function");
    } else {
      status = Read(proto, files, attributes);
    }
    if (status.ok()) continue;
    return absl::Status(status.code(),
                        absl::StrCat("attribute '", proto.name(), "' ", status.message()));
  }
  return attributes;
}

std::vector<std::string> UnknownAttributes(const ::onnx::NodeProto& node, int64_t opset) {
  std::vector<std::string> unknown;
  const std::string op = OperatorName(node);
  const auto known = AllKnownAttributes().find(op);
  if (known == AllKnownAttributes().end()) return unknown;
  opset = std::max<int64_t>(opset, 7);  // older operators are supported if they did not change
  for (const Proto& attribute : node.attribute()) {
    const bool is_known =
        std::any_of(known->second.begin(), known->second.end(), [&](const KnownAttribute& each) {
          return each.name == attribute.name() && each.first <= opset && opset < each.end;
        });
    if (!is_known) unknown.push_back(attribute.name());
  }
  return unknown;
}

}  // namespace hone::onnx
