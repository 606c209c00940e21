#include "common/operator/operator.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/operator/library.h"

namespace hone::op {
namespace {

// A statement of a workload or of a template: the tensors that it declares.
struct Statement {
  bool input = false, output = false, constant = false;
  std::string type;  // of an input
  std::vector<std::string> names;
  std::vector<std::string> extents;
};

Statement ReadStatement(absl::string_view line) {
  Statement statement;
  statement.input = absl::ConsumePrefix(&line, "input ");
  statement.output = absl::ConsumePrefix(&line, "output ");
  statement.constant = absl::EndsWith(line, "] constant");
  const std::vector<std::string> parts =
      absl::StrSplit(line, absl::MaxSplits(absl::ByAnyChar("[]"), 2));
  if (parts.size() < 2) return statement;
  const std::vector<std::string> head = absl::StrSplit(parts[0], ": ");
  if (head.size() == 2) statement.type = head[1];
  statement.names = absl::StrSplit(absl::StrReplaceAll(head[0], {{"(", ""}, {")", ""}}), ", ");
  for (const absl::string_view extent : absl::StrSplit(parts[1], ", ")) {
    const std::vector<std::string> axis = absl::StrSplit(extent, ": ");
    statement.extents.push_back(absl::StrReplaceAll(axis.back(), {{"{", ""}, {"}", ""}}));
  }
  return statement;
}

// Fills in the inputs and outputs that the text declares.
void DescribeTensors(OperatorInfo& info) {
  for (absl::string_view line : absl::StrSplit(info.text, '\n')) {
    if (absl::StartsWith(line, "{")) line.remove_prefix(line.find(" ? ") + 3);
    const Statement statement = ReadStatement(line);
    for (size_t t = 0; t < statement.names.size(); ++t) {
      TensorInfo tensor{statement.names[t], absl::StrJoin(statement.extents, " "),
                        statement.constant};
      if (statement.input && statement.type != "{dtype}") tensor.dtype = statement.type;
      // The second output of a stage is an index.
      if (statement.output && (t > 0 || info.types == Types::kFixed)) tensor.dtype = "i32";
      std::vector<TensorInfo>& tensors = statement.input ? info.inputs : info.outputs;
      // Only one of several optional statements declares it.
      const bool listed = std::any_of(tensors.begin(), tensors.end(),
                                      [&](const auto& other) { return other.name == tensor.name; });
      if (!listed && (statement.input || statement.output)) tensors.push_back(std::move(tensor));
    }
  }
}

absl::Status AddValue(const OperatorInfo& info, absl::string_view key, absl::string_view value,
                      Definitions& arguments) {
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
  if (!arguments.emplace(key, absl::StrCat(number)).second) {
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
      arguments.emplace(key.name, absl::StrCat(key.default_value));
    } else if (const auto other = arguments.find(key.default_key); other != arguments.end()) {
      arguments.emplace(key.name, other->second);
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

// Completes and checks dtype and acc.
absl::Status AddTypes(const OperatorInfo& info, Definitions& arguments) {
  if (info.types == Types::kFixed) {
    arguments["acc"] = "i32";
    return absl::OkStatus();
  }
  const std::string& name = arguments.emplace("dtype", "f32").first->second;
  HONE_ASSIGN_OR_RETURN(const ir::DType dtype, ir::DTypeFromName(name));
  HONE_ASSIGN_OR_RETURN(const ir::DType acc,
                        ir::DTypeFromName(arguments.emplace("acc", name).first->second));
  if (dtype == ir::DType::kBool || acc == ir::DType::kBool) {
    return absl::InvalidArgumentError("dtype bool has no arithmetic");
  }
  if (ir::IsPacked(acc)) {
    return absl::InvalidArgumentError(
        absl::StrCat("only inputs are of type ", ir::DTypeName(acc),
                     "; choose the type of the results, as in acc=i32"));
  }
  if (!Holds(acc, dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "acc ", ir::DTypeName(acc), " cannot hold what dtype ", ir::DTypeName(dtype), " can"));
  }
  if (info.types == Types::kFloats && !ir::IsFloat(acc)) {
    return absl::InvalidArgumentError(absl::StrCat(info.name, " computes in a float type, not ",
                                                   ir::DTypeName(acc),
                                                   "; with acc=f32 it converts its inputs"));
  }
  return absl::OkStatus();
}

// The checked and complete arguments. Every key has a value, except a key that is only the default
// of other keys, all of which are given (KeyInfo::default_key).
absl::StatusOr<Definitions> ReadArguments(const OperatorInfo& info,
                                          absl::Span<const std::string> words) {
  Definitions arguments;
  for (const std::string& word : words) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    const auto [key, value] = pair;
    if (!absl::StrContains(word, '=') || key.empty() || value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("'", word, "' is not of the form key=value"));
    }
    if (info.types == Types::kFixed || (key != "dtype" && key != "acc")) {
      HONE_RETURN_IF_ERROR(AddValue(info, key, value, arguments));
    } else if (!arguments.emplace(key, value).second) {
      return absl::InvalidArgumentError(absl::StrCat("key '", key, "' is given twice"));
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
    for (size_t at = stage.find(read); at != stage.npos; at = stage.find(read, at)) {
      // Not the end of a longer name.
      if (at > 0 && (absl::ascii_isalnum(static_cast<unsigned char>(stage[at - 1])))) {
        ++at;
        continue;
      }
      stage.insert(stage.find(']', at) + 1, ")");
      stage.insert(at, absl::StrCat(acc, "("));
      at += acc.size() + read.size();
    }
  }
  return stage;
}

// The error of a workload that does not parse, without the position in a text that the user did not
// write. Only limits on sizes can be exceeded; an extent is reported with its tensor.
absl::Status SizeError(absl::string_view message, absl::string_view acc,
                       const std::vector<std::string>& lines) {
  const std::vector<std::string> parts = absl::StrSplit(message, absl::MaxSplits(':', 2));
  size_t number = 0;
  if (parts.size() == 3 && absl::SimpleAtoi(parts[0], &number) && number <= lines.size()) {
    const Statement statement = ReadStatement(lines[number - 1]);
    ir::Tensor tensor{.name = statement.names[0]};
    HONE_ASSIGN_OR_RETURN(tensor.dtype, ir::DTypeFromName(statement.input ? statement.type : acc));
    for (const std::string& extent : statement.extents) {
      tensor.shape.emplace_back();
      (void)absl::SimpleAtoi(extent, &tensor.shape.back());
    }
    HONE_RETURN_IF_ERROR(ir::ValidateTensor(tensor));
  }
  const absl::string_view what = parts.back();
  return absl::InvalidArgumentError(absl::StripAsciiWhitespace(what.substr(0, what.find('\n'))));
}

}  // namespace

const std::vector<OperatorInfo>& Operators() {
  static const auto* const operators = [] {
    auto* const all = new std::vector<OperatorInfo>;
    for (auto* const family : {ImageOperators, MatrixOperators, RowOperators}) {
      std::vector<OperatorInfo> members = family();
      std::move(members.begin(), members.end(), std::back_inserter(*all));
    }
    std::for_each(all->begin(), all->end(), DescribeTensors);
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
  HONE_ASSIGN_OR_RETURN(Definitions definitions, ReadArguments(*info, words));
  definitions.insert(info->definitions.begin(), info->definitions.end());
  for (const Check& check : info->checks) {
    if (Evaluate(check.expression, definitions) != 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", Expand(check.message, definitions)));
  }
  // Without the breaks inside statements, so that each is one line.
  const std::string text = absl::StrReplaceAll(Expand(info->text, definitions), {{"\n  ", " "}});
  std::vector<std::string> lines = absl::StrSplit(absl::StrCat("workload ", name, text), '\n');
  const std::string& acc = definitions["acc"];
  for (std::string& line : lines) {
    if (!absl::StartsWith(line, "input ")) line = WithConversions(*info, acc, std::move(line));
  }
  auto workload = ir::ParseWorkload(absl::StrJoin(lines, "\n"));
  if (!workload.ok()) return SizeError(workload.status().message(), acc, lines);
  return workload;
}

}  // namespace hone::op
