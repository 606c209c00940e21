#include "common/operator/library.h"

#include <cstdlib>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hone::op {
namespace {

template <typename Named>
const Named& Called(absl::string_view name, const std::vector<Named>& all) {
  const auto named = absl::c_find_if(all, [&](const Named& one) { return one.name == name; });
  if (named == all.end()) std::abort();
  return *named;
}

// Reads "p = 0 min 0".
KeyInfo ReadKey(absl::string_view head, absl::string_view meaning) {
  const std::vector<std::string> words = absl::StrSplit(head, ' ');
  KeyInfo key{.name = words[0], .meaning = std::string(meaning)};
  for (size_t i = 1; i + 1 < words.size(); i += 2) {
    int64_t& value = words[i] == "min"   ? key.minimum
                     : words[i] == "max" ? key.maximum
                                         : key.default_value;
    if (!absl::SimpleAtoi(words[i + 1], &value)) {
      key.default_value = -1;
      key.default_key = words[i + 1];
    }
  }
  return key;
}

// Adds the inputs and outputs that a statement declares. Of optional statements that declare the
// same tensor, the first describes it.
void AddTensors(absl::string_view statement, OperatorInfo& info) {
  if (absl::StartsWith(statement, "{")) statement.remove_prefix(statement.find(" ? ") + 3);
  const Declaration declared = ReadDeclaration(statement);
  if (!declared.input && !declared.output) return;
  std::vector<TensorInfo>& tensors = declared.input ? info.inputs : info.outputs;
  for (size_t t = 0; t < declared.names.size(); ++t) {
    TensorInfo tensor{declared.names[t], absl::StrJoin(declared.extents, " "), declared.constant};
    absl::StrReplaceAll({{"{", ""}, {"}", ""}}, &tensor.layout);
    if (declared.input && declared.type != "{dtype}") tensor.dtype = declared.type;
    // The second output of a stage is an index.
    if (declared.output && (t > 0 || info.types == Types::kFixed)) tensor.dtype = "i32";
    if (absl::c_none_of(tensors,
                        [&](const TensorInfo& other) { return other.name == tensor.name; })) {
      tensors.push_back(std::move(tensor));
    }
  }
}

}  // namespace

Declaration ReadDeclaration(absl::string_view statement) {
  Declaration declared;
  declared.input = absl::ConsumePrefix(&statement, "input ");
  declared.output = absl::ConsumePrefix(&statement, "output ");
  declared.constant = absl::EndsWith(statement, "] constant");
  const std::vector<std::string> parts =
      absl::StrSplit(statement, absl::MaxSplits(absl::ByAnyChar("[]"), 2));
  if (parts.size() < 3) return declared;
  const std::vector<std::string> head = absl::StrSplit(parts[0], ": ");
  if (head.size() > 1) declared.type = head[1];
  declared.names = absl::StrSplit(absl::StrReplaceAll(head[0], {{"(", ""}, {")", ""}}), ", ");
  for (const absl::string_view axis : absl::StrSplit(parts[1], ", "))
    declared.extents.emplace_back(axis.substr(axis.rfind(' ') + 1));
  return declared;
}

std::vector<OperatorInfo> ReadOperators(absl::string_view text) {
  OperatorInfo shared;  // what precedes the first operator
  std::vector<OperatorInfo> operators;
  const std::string joined = absl::StrReplaceAll(text, {{"\n  ", " "}});
  for (const absl::string_view line : absl::StrSplit(joined, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> split = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    const auto& [word, rest] = split;
    const std::vector<std::string> sides = absl::StrSplit(rest, absl::MaxSplits(": ", 1));
    OperatorInfo& info = operators.empty() ? shared : operators.back();
    if (word == "#") continue;
    if (word == "operator") {
      const std::vector<std::string> head = absl::StrSplit(sides[0], ' ');
      operators.push_back({.name = head[0],
                           .meaning = sides.at(1),
                           .types = head.back() == "floats"  ? Types::kFloats
                                    : head.back() == "fixed" ? Types::kFixed
                                                             : Types::kNumbers,
                           .statements = shared.statements});
    } else if (word == "note") {
      info.note = rest;
    } else if (word == "key") {
      info.keys.push_back(ReadKey(sides[0], sides.at(1)));
    } else if (word == "keys") {
      for (const absl::string_view name : absl::StrSplit(rest, ' '))
        info.keys.push_back(Called(name, shared.keys));
    } else if (word == "like") {
      const OperatorInfo& other = Called(rest, operators);
      info.keys.insert(info.keys.end(), other.keys.begin(), other.keys.end());
      for (size_t s = shared.statements.size(); s < other.statements.size(); ++s) {
        const std::string& statement = other.statements[s];
        if (absl::StartsWith(statement, "let ") || absl::StartsWith(statement, "check "))
          info.statements.push_back(statement);
      }
    } else {
      if (word != "let" && word != "check") AddTensors(line, info);
      info.statements.emplace_back(line);
    }
  }
  return operators;
}

}  // namespace hone::op
