#include "common/operator/operator.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/operator/families.h"

namespace hone::op {
namespace {

absl::Status AddValue(const OperatorInfo& info, absl::string_view key, absl::string_view value,
                      Arguments& arguments) {
  const auto known = std::find_if(info.keys.begin(), info.keys.end(),
                                  [&](const KeyInfo& k) { return k.name == key; });
  if (known == info.keys.end()) {
    std::vector<std::string> keys;
    for (const KeyInfo& k : info.keys) keys.push_back(k.name);
    return absl::InvalidArgumentError(
        absl::StrCat(info.name, " has no key '", key, "'", DidYouMean(key, keys)));
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number)) {
    return absl::InvalidArgumentError(
        absl::StrCat("key '", key, "': '", value, "' is not a whole number that fits in 64 bits"));
  }
  if (number < known->minimum) {
    return absl::InvalidArgumentError(
        absl::StrCat("key '", key, "' is ", number, "; it must be at least ", known->minimum));
  }
  if (number > known->maximum) {
    return absl::InvalidArgumentError(
        absl::StrCat("key '", key, "' is ", number, "; at most ", known->maximum, " is supported"));
  }
  if (!arguments.values.emplace(std::string(key), number).second) {
    return absl::InvalidArgumentError(absl::StrCat("key '", key, "' is given twice"));
  }
  return absl::OkStatus();
}

// Whether a key is the extent of a tensor's dimension.
bool IsExtent(const OperatorInfo& info, absl::string_view key) {
  for (const auto* tensors : {&info.inputs, &info.outputs}) {
    for (const TensorInfo& tensor : *tensors) {
      const std::vector<absl::string_view> dimensions = absl::StrSplit(tensor.layout, ' ');
      if (std::find(dimensions.begin(), dimensions.end(), key) != dimensions.end()) return true;
    }
  }
  return false;
}

// Whether a key needs a value. A key that is only the default of other keys needs none if all of
// those are given.
bool Needed(const OperatorInfo& info, const KeyInfo& key, const Arguments& arguments) {
  if (arguments.values.contains(key.name)) return false;
  if (IsExtent(info, key.name)) return true;
  bool taken = false;
  for (const KeyInfo& other : info.keys) {
    if (other.default_key != key.name) continue;
    taken = true;
    if (Needed(info, other, arguments)) return true;
  }
  return !taken;
}

absl::Status AddDefaults(const OperatorInfo& info, Arguments& arguments) {
  for (const KeyInfo& key : info.keys) {
    if (arguments.values.contains(key.name)) continue;
    if (key.default_value >= 0) {
      arguments.values[key.name] = key.default_value;
    } else if (!key.default_key.empty()) {
      const auto other = arguments.values.find(key.default_key);
      if (other != arguments.values.end()) arguments.values[key.name] = other->second;
    }
  }
  for (const KeyInfo& key : info.keys) {
    if (Needed(info, key, arguments)) {
      return absl::InvalidArgumentError(
          absl::StrCat(info.name, " needs key '", key.name, "' (", key.meaning, ")"));
    }
  }
  return absl::OkStatus();
}

// Whether `to` holds every value of `from`.
bool Holds(ir::DType to, ir::DType from) {
  from = ir::LoadedAs(from);
  if (to == from) return true;
  if (ir::IsFloat(from) && !ir::IsFloat(to)) return false;
  if (from == ir::DType::kU8 && to == ir::DType::kI8) return false;
  return ir::DTypeBytes(to) > ir::DTypeBytes(from);
}

// Sets dtype and acc.
absl::Status AddTypes(const OperatorInfo& info, absl::string_view dtype, absl::string_view acc,
                      Arguments& arguments) {
  if (!dtype.empty()) {
    HONE_ASSIGN_OR_RETURN(arguments.dtype, ir::DTypeFromName(dtype));
  }
  arguments.acc = arguments.dtype;
  if (!acc.empty()) {
    HONE_ASSIGN_OR_RETURN(arguments.acc, ir::DTypeFromName(acc));
  }
  if (arguments.dtype == ir::DType::kBool || arguments.acc == ir::DType::kBool) {
    return absl::InvalidArgumentError("dtype bool has no arithmetic");
  }
  if (ir::IsPacked(arguments.acc)) {
    return absl::InvalidArgumentError(
        absl::StrCat("only inputs are of type ", ir::DTypeName(arguments.acc),
                     "; choose the type of the results, as in acc=i32"));
  }
  if (!Holds(arguments.acc, arguments.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("acc ", ir::DTypeName(arguments.acc),
                                                   " cannot hold what dtype ",
                                                   ir::DTypeName(arguments.dtype), " can"));
  }
  if (info.types == Types::kFloats && !ir::IsFloat(arguments.acc)) {
    return absl::InvalidArgumentError(absl::StrCat(info.name, " computes in a float type, not ",
                                                   ir::DTypeName(arguments.acc),
                                                   "; with acc=f32 it converts its inputs"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Arguments> ReadArguments(const OperatorInfo& info,
                                        absl::Span<const std::string> words) {
  Arguments arguments;
  std::string types[2];
  for (const std::string& word : words) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    const auto [key, value] = pair;
    if (!absl::StrContains(word, '=') || key.empty() || value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("'", word, "' is not of the form key=value"));
    }
    if (info.types != Types::kFixed && (key == "dtype" || key == "acc")) {
      std::string& type = types[key == "acc"];
      if (!type.empty())
        return absl::InvalidArgumentError(absl::StrCat("key '", key, "' is given twice"));
      type = std::string(value);
      continue;
    }
    HONE_RETURN_IF_ERROR(AddValue(info, key, value, arguments));
  }
  HONE_RETURN_IF_ERROR(AddTypes(info, types[0], types[1], arguments));
  HONE_RETURN_IF_ERROR(AddDefaults(info, arguments));
  return arguments;
}

}  // namespace

const std::vector<OperatorInfo>& Operators() {
  static const auto* const operators = [] {
    auto* const all = new std::vector<OperatorInfo>;
    for (auto* const family :
         {AttentionOperators, CapsuleOperators, ConvolutionOperators, DenseOperators,
          DepthwiseOperators, ElementwiseOperators, LstmOperators, MatmulOperators,
          NormalizationOperators, PoolingOperators, QuantizedOperators, ReductionOperators,
          SoftmaxOperators, TransposedConvolutionOperators, TranspositionOperators,
          WinogradOperators}) {
      std::vector<OperatorInfo> members = family();
      std::move(members.begin(), members.end(), std::back_inserter(*all));
    }
    std::sort(all->begin(), all->end(),
              [](const OperatorInfo& a, const OperatorInfo& b) { return a.name < b.name; });
    return all;
  }();
  return *operators;
}

const OperatorInfo* FindOperator(absl::string_view name) {
  const auto& operators = Operators();
  const auto info = std::find_if(operators.begin(), operators.end(),
                                 [&](const auto& o) { return o.name == name; });
  return info == operators.end() ? nullptr : &*info;
}

absl::StatusOr<ir::Workload> BuildWorkload(absl::string_view name,
                                           absl::Span<const std::string> words) {
  const OperatorInfo* const info = FindOperator(name);
  if (info == nullptr) {
    std::vector<std::string> names;
    for (const OperatorInfo& o : Operators()) names.push_back(o.name);
    return absl::NotFoundError(
        absl::StrCat("unknown operator '", name, "'", DidYouMean(name, names)));
  }
  HONE_ASSIGN_OR_RETURN(const Arguments arguments, ReadArguments(*info, words));
  return info->build(arguments);
}

}  // namespace hone::op
