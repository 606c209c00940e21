#include "common/operator/operator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/operator/library.h"
#include "common/operator/text_template.h"

namespace hone::op {
namespace {

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

template <typename Named>
std::vector<std::string> NamesOf(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const Named& one : all) names.push_back(one.name);
  return names;
}

absl::Status AddValue(const OperatorInfo& info, absl::string_view name, absl::string_view value,
                      Definitions& arguments) {
  const auto key = absl::c_find_if(info.keys, [&](const KeyInfo& k) { return k.name == name; });
  if (key == info.keys.end()) {
    return Invalid(info.name, " has no key '", name, "'", DidYouMean(name, NamesOf(info.keys)));
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number)) {
    return Invalid("key '", name, "': '", value, "' is not a whole number that fits in 64 bits");
  }
  if (number < key->minimum) {
    return Invalid("key '", name, "' is ", number, "; it must be at least ", key->minimum);
  }
  if (number > key->maximum) {
    return Invalid("key '", name, "' is ", number, "; at most ", key->maximum, " is supported");
  }
  const bool added = arguments.try_emplace(key->name, Definition{absl::StrCat(number)}).second;
  return added ? absl::OkStatus() : Invalid("key '", name, "' is given twice");
}

// Whether a key is the extent of a tensor's dimension.
bool IsExtent(const OperatorInfo& info, absl::string_view key) {
  for (const auto* tensors : {&info.inputs, &info.outputs}) {
    for (const TensorInfo& tensor : *tensors) {
      const std::vector<absl::string_view> dimensions = absl::StrSplit(tensor.layout, ' ');
      if (absl::c_linear_search(dimensions, key)) return true;
    }
  }
  return false;
}

// Whether a key needs a value. A key that is only the default of other keys needs none if all of
// those are given.
bool Needed(const OperatorInfo& info, const KeyInfo& key, const Definitions& arguments) {
  if (arguments.contains(key.name)) return false;
  if (IsExtent(info, key.name)) return true;
  bool taken = false;
  for (const KeyInfo& other : info.keys) {
    if (other.default_key != key.name) continue;
    taken = true;
    if (Needed(info, other, arguments)) return true;
  }
  return !taken;
}

absl::Status AddDefaults(const OperatorInfo& info, Definitions& arguments) {
  for (const KeyInfo& key : info.keys) {
    if (key.default_value >= 0) {
      arguments.try_emplace(key.name, Definition{absl::StrCat(key.default_value)});
    } else if (const auto other = arguments.find(key.default_key); other != arguments.end()) {
      arguments.try_emplace(key.name, other->second);
    }
  }
  for (const KeyInfo& key : info.keys) {
    if (!Needed(info, key, arguments)) continue;
    return Invalid(info.name, " needs key '", key.name, "' (", key.meaning, ")");
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

// Completes and checks dtype and acc.
absl::Status AddTypes(const OperatorInfo& info, Definitions& arguments) {
  if (info.types == Types::kFixed) {
    arguments["acc"] = {"i32"};
    return absl::OkStatus();
  }
  const Definition given = arguments.try_emplace("dtype", Definition{"f32"}).first->second;
  HONE_ASSIGN_OR_RETURN(const ir::DType dtype, ir::DTypeFromName(given.text));
  HONE_ASSIGN_OR_RETURN(const ir::DType acc,
                        ir::DTypeFromName(arguments.try_emplace("acc", given).first->second.text));
  if (dtype == ir::DType::kBool || acc == ir::DType::kBool) {
    return Invalid("dtype bool has no arithmetic");
  }
  if (ir::IsPacked(acc)) {
    return Invalid("only inputs are of type ", ir::DTypeName(acc),
                   "; choose the type of the results, as in acc=i32");
  }
  if (!Holds(acc, dtype)) {
    return Invalid("acc ", ir::DTypeName(acc), " cannot hold what dtype ", ir::DTypeName(dtype),
                   " can");
  }
  if (info.types == Types::kFloats && !ir::IsFloat(acc)) {
    return Invalid(info.name, " computes in a float type, not ", ir::DTypeName(acc),
                   "; with acc=f32 it converts its inputs");
  }
  return absl::OkStatus();
}

// The checked and complete arguments. Every key has a value, except a key that is only the default
// of other keys, all of which are given (KeyInfo::default_key).
absl::StatusOr<Definitions> ReadArguments(const OperatorInfo& info,
                                          absl::Span<const std::string> words) {
  Definitions arguments;
  for (const std::string& word : words) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const auto& [key, value] = pair;
    if (key.empty() || value.empty()) return Invalid("'", word, "' is not of the form key=value");
    if (info.types == Types::kFixed || (key != "dtype" && key != "acc")) {
      HONE_RETURN_IF_ERROR(AddValue(info, key, value, arguments));
    } else if (!arguments.try_emplace(key, Definition{value}).second) {
      return Invalid("key '", key, "' is given twice");
    }
  }
  HONE_RETURN_IF_ERROR(AddTypes(info, arguments));
  HONE_RETURN_IF_ERROR(AddDefaults(info, arguments));
  return arguments;
}

// Converts the elements of inputs that a stage reads: "A[i, k]" becomes "f32(A[i, k])".
std::string WithConversions(const OperatorInfo& info, absl::string_view acc, std::string stage) {
  for (const TensorInfo& input : info.inputs) {
    const std::string read = input.name + "[";
    for (size_t at = stage.find(read, 1); at != stage.npos; at = stage.find(read, at + 1)) {
      // Not the end of a longer name.
      if (absl::ascii_isalnum(static_cast<unsigned char>(stage[at - 1]))) continue;
      stage.insert(stage.find(']', at) + 1, ")");
      stage.insert(at, absl::StrCat(acc, "("));
      at += acc.size() + 1;
    }
  }
  return stage;
}

// The error of a workload that does not parse, without the position in a text that the user did not
// write. Only limits on sizes can be exceeded; an extent is reported with its tensor.
absl::Status SizeError(absl::string_view message, absl::string_view acc,
                       const std::vector<std::string>& statements) {
  const std::vector<std::string> parts = absl::StrSplit(message, absl::MaxSplits(": ", 1));
  const Declaration declared =
      ReadDeclaration(statements.at(std::strtoull(parts[0].c_str(), nullptr, 10) - 1));
  if (!declared.names.empty()) {
    ir::Tensor tensor{.name = declared.names[0]};
    HONE_ASSIGN_OR_RETURN(tensor.dtype, ir::DTypeFromName(declared.input ? declared.type : acc));
    for (const std::string& extent : declared.extents)
      tensor.shape.push_back(std::strtoll(extent.c_str(), nullptr, 10));
    HONE_RETURN_IF_ERROR(ir::ValidateTensor(tensor));
  }
  return Invalid(parts.back().substr(0, parts.back().find('\n')));
}

}  // namespace

const std::vector<OperatorInfo>& Operators() {
  static const auto* const operators = [] {
    auto* const all = new std::vector<OperatorInfo>;
    for (const char* text : {kImageOperators, kMatrixOperators, kRowOperators}) {
      std::vector<OperatorInfo> some = ReadOperators(text);
      std::move(some.begin(), some.end(), std::back_inserter(*all));
    }
    std::sort(all->begin(), all->end(),
              [](const OperatorInfo& a, const OperatorInfo& b) { return a.name < b.name; });
    return all;
  }();
  return *operators;
}

const OperatorInfo* FindOperator(absl::string_view name) {
  const auto& operators = Operators();
  const auto info =
      absl::c_find_if(operators, [&](const OperatorInfo& o) { return o.name == name; });
  return info == operators.end() ? nullptr : &*info;
}

absl::StatusOr<ir::Workload> BuildWorkload(absl::string_view name,
                                           absl::Span<const std::string> words) {
  const OperatorInfo* const info = FindOperator(name);
  if (info == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("unknown operator '", name, "'", DidYouMean(name, NamesOf(Operators()))));
  }
  HONE_ASSIGN_OR_RETURN(Definitions definitions, ReadArguments(*info, words));
  const std::string acc = definitions["acc"].text;
  definitions["max_elements"] = {absl::StrCat(ir::kMaxElements)};
  std::vector<std::string> statements = {absl::StrCat("workload ", name)};
  for (absl::string_view statement : info->statements) {
    if (absl::ConsumePrefix(&statement, "let ")) {
      Define(statement, definitions);
    } else if (absl::ConsumePrefix(&statement, "check ")) {
      const std::pair<absl::string_view, absl::string_view> check =
          absl::StrSplit(statement, absl::MaxSplits(": ", 1));
      if (Evaluate(check.first, definitions) == 0)
        return Invalid(name, ": ", Expand(check.second, definitions));
    } else {
      statements.push_back(Expand(statement, definitions));
      if (!absl::StartsWith(statement, "input "))
        statements.back() = WithConversions(*info, acc, std::move(statements.back()));
    }
  }
  auto workload = ir::ParseWorkload(absl::StrJoin(statements, "\n"));
  if (!workload.ok()) return SizeError(workload.status().message(), acc, statements);
  return workload;
}

}  // namespace hone::op
