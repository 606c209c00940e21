#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/workload_argument.h"
#include "client/network/onnx/supported_operators.h"
#include "common/base/status_macros.h"
#include "common/ir/vocabulary.h"
#include "common/ir/workload.h"
#include "common/operator/operator.h"

namespace hone::cli {
namespace {

constexpr int kNoteColumns = 98;      // width of a note, without its indent
constexpr int kListColumns = 120;     // width of the text below the list
constexpr int kOnnxNameColumns = 24;  // width of the name of an ONNX operator
constexpr char kBelowList[] =
    "Keys in brackets have a default. Tensors are dense and row-major, dimensions from the "
    "outermost to the innermost; constant ones are weights, which a kernel may repack ahead of "
    "time. Types are those of dtype=f32 and acc=dtype unless a tensor has its own. NaN inputs give "
    "NaN outputs, except that a maximum over elements (argmax, max_pool2d, reduce_max) leaves NaN "
    "out. hone operators OP shows notes on a single operator.\n\n"
    "Other workloads can be written as text, with these functions and reducers "
    "(docs/language.md):";

// An operator, and its workload if the command line has keys.
struct ShownOperator {
  const op::OperatorInfo* info;
  std::optional<ir::Workload> workload;

  // The inputs of the workload; empty without a workload.
  std::vector<ir::BufferId> Inputs() const {
    return workload.has_value() ? workload->Inputs() : std::vector<ir::BufferId>();
  }
  std::vector<ir::BufferId> Outputs() const {
    return workload.has_value() ? workload->Outputs() : std::vector<ir::BufferId>();
  }
};

std::string DefaultOf(const op::KeyInfo& key) {
  if (key.Required()) return "";
  return key.default_value >= 0 ? absl::StrCat(key.default_value) : key.default_key;
}

// "conv2d n h w ci co k [s=1] …".
std::string Usage(const op::OperatorInfo& info) {
  std::string text = info.name;
  for (const op::KeyInfo& key : info.keys) {
    absl::StrAppend(
        &text, " ",
        key.Required() ? key.name : absl::StrCat("[", key.name, "=", DefaultOf(key), "]"));
  }
  return text;
}

// Lists inputs and outputs in order, with their types if the shapes are known, otherwise with their
// layouts.
std::string TensorsText(const ShownOperator& shown, int columns) {
  Table table({Left(""), Left(""), Left(""), Left("")});
  const auto add = [&](const char* title, const std::vector<op::TensorInfo>& tensors,
                       const std::vector<ir::BufferId>& ids) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const op::TensorInfo& tensor = tensors[i];
      std::string type = tensor.dtype;
      if (shown.workload.has_value()) {
        const ir::Tensor& built = shown.workload->tensors[ids[i]];
        type = ir::TypeText(built.dtype, built.shape);
      }
      table.AddRow(
          {absl::StrCat("  ", i == 0 ? title : ""), tensor.name,
           absl::StrCat("[", absl::StrJoin(absl::StrSplit(tensor.layout, ' '), ", "), "]"),
           absl::StrCat(type, tensor.constant ? (type.empty() ? "constant" : " constant") : "")});
    }
  };
  add("inputs", shown.info->inputs, shown.Inputs());
  add("outputs", shown.info->outputs, shown.Outputs());
  const std::string text = table.ToText(columns);
  return text.substr(text.find('\n') + 1);  // the columns have no titles
}

std::string KeysText(const op::OperatorInfo& info, int columns) {
  Table table({Left("  key"), Left("default"), Text("meaning")});
  for (const op::KeyInfo& key : info.keys) {
    table.AddRow({absl::StrCat("  ", key.name), DefaultOf(key), key.meaning});
  }
  if (info.types != op::Types::kFixed) {
    table.AddRow({"  dtype", "f32", "type of the inputs"});
    table.AddRow({"  acc", "dtype",
                  "type of the computation and of the outputs, at least as wide as dtype"});
  }
  return table.ToText(columns);
}

Json ToJson(const ShownOperator& shown) {
  const op::OperatorInfo& info = *shown.info;
  Json keys = Json::array();
  for (const op::KeyInfo& key : info.keys) {
    Json entry = {{"name", key.name},
                  {"meaning", key.meaning},
                  {"default", nullptr},
                  {"minimum", key.minimum},
                  {"maximum", key.maximum}};
    if (key.default_value >= 0) entry["default"] = key.default_value;
    if (!key.default_key.empty()) entry["default"] = key.default_key;
    keys.push_back(std::move(entry));
  }
  if (info.types != op::Types::kFixed) {
    keys.push_back({{"name", "dtype"}, {"meaning", "type of the inputs"}, {"default", "f32"}});
    keys.push_back({{"name", "acc"},
                    {"meaning", "type of the computation and of the outputs"},
                    {"default", "dtype"}});
  }
  const auto tensors = [&](const std::vector<op::TensorInfo>& listed,
                           const std::vector<ir::BufferId>& ids, const char* type) {
    Json list = Json::array();
    for (size_t i = 0; i < listed.size(); ++i) {
      const op::TensorInfo& tensor = listed[i];
      const std::vector<std::string> layout = absl::StrSplit(tensor.layout, ' ');
      Json entry = {{"name", tensor.name},
                    {"layout", layout},
                    {"dtype", tensor.dtype.empty() ? type : tensor.dtype},
                    {"constant", tensor.constant}};
      if (shown.workload.has_value()) {
        const ir::Tensor& built = shown.workload->tensors[ids[i]];
        entry["dtype"] = std::string(ir::DTypeName(built.dtype));
        entry["shape"] = std::vector<int64_t>(built.shape.begin(), built.shape.end());
      }
      list.push_back(std::move(entry));
    }
    return list;
  };
  Json json = {{"name", info.name},
               {"meaning", info.meaning},
               {"note", info.note},
               {"keys", std::move(keys)},
               {"inputs", tensors(info.inputs, shown.Inputs(), "dtype")},
               {"outputs", tensors(info.outputs, shown.Outputs(), "acc")}};
  if (shown.workload.has_value()) json["flops"] = FlopCount(*shown.workload);
  return json;
}

// A function or reducer of workloads in text form.
struct Word {
  std::string name;
  std::string usage;
  std::string takes;  // the types that a function takes; "" for reducers
  std::string meaning;
};

// The functions or reducers with this name; all of them for "".
template <typename T>
std::vector<Word> VocabularyOf(absl::Span<const T> known, absl::string_view name) {
  std::vector<Word> words;
  for (const T& each : known) {
    if (!name.empty() && each.name() != name) continue;
    words.push_back(
        {std::string(each.name()), std::string(each.usage), "", std::string(each.meaning)});
    if constexpr (std::is_same_v<T, ir::Function>) {
      words.back().takes = std::string(ir::TakesText(each.takes));
    }
  }
  return words;
}

// Returns a table of the words under a title, or "" if the list is empty.
std::string WordsText(const char* title, const std::vector<Word>& words, int columns) {
  if (words.empty()) return "";
  Table table({Left(absl::StrCat("  ", title)), Left(words[0].takes.empty() ? "" : "takes"),
               Text("meaning")});
  for (const Word& word : words) {
    table.AddRow({absl::StrCat("  ", word.usage), word.takes, word.meaning});
  }
  return table.ToText(columns);
}

Json ToJson(const Word& word) {
  Json json = {{"name", word.name}, {"usage", word.usage}, {"meaning", word.meaning}};
  if (!word.takes.empty()) json["takes"] = word.takes;
  return json;
}

absl::StatusOr<std::vector<ShownOperator>> WhatToShow(const std::vector<std::string>& words) {
  std::vector<ShownOperator> shown;
  if (words.empty()) {
    for (const op::OperatorInfo& info : op::Operators()) shown.push_back({&info, std::nullopt});
    return shown;
  }
  const op::OperatorInfo* const info = op::FindOperator(words[0]);
  if (info != nullptr && words.size() == 1) return std::vector<ShownOperator>{{info, std::nullopt}};
  HONE_ASSIGN_OR_RETURN(WorkloadArgument argument, ReadWorkloadArgument(words));
  if (info == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(words[0], " is not an operator; use hone show for files"));
  }
  return std::vector<ShownOperator>{{info, std::move(argument.workload)}};
}

absl::Status ListOperators(const Globals& globals, const std::vector<std::string>& words) {
  const std::string name = words.empty() ? "" : words[0];
  std::vector<Word> functions, reducers;
  if (words.size() < 2) {
    functions = VocabularyOf(ir::Functions(), name);
    reducers = VocabularyOf(ir::Reducers(), name);
  }
  std::vector<ShownOperator> all;
  if (op::FindOperator(name) != nullptr || (functions.empty() && reducers.empty()) ||
      words.empty()) {
    HONE_ASSIGN_OR_RETURN(all, WhatToShow(words));
  }
  if (globals.json) {
    return PrintJson({{"operators", ListJson(all)},
                      {"functions", ListJson(functions)},
                      {"reducers", ListJson(reducers)}});
  }
  const int columns = TerminalColumns(STDOUT_FILENO);
  std::string text;
  for (const ShownOperator& shown : all) {
    absl::StrAppend(&text, Wrapped(Usage(*shown.info), columns, "    "), "\n",
                    Wrapped(absl::StrCat("  ", shown.info->meaning), columns, "    "), "\n",
                    TensorsText(shown, columns));
    if (!words.empty()) {
      if (!shown.info->note.empty())
        absl::StrAppend(&text, "\n  ",
                        Wrapped(shown.info->note, std::min(kNoteColumns, columns - 2), "  "), "\n");
      absl::StrAppend(&text, "\n", KeysText(*shown.info, columns));
    }
    if (shown.workload.has_value()) {
      absl::StrAppend(&text, "\n", FlopCount(*shown.workload) / 1e9, " GFLOP; the stages are:\n\n",
                      shown.workload->ToText());
    }
    text += "\n";
  }
  if (words.empty()) {
    absl::StrAppend(&text, Wrapped(kBelowList, std::min(kListColumns, columns)), "\n\n");
  }
  absl::StrAppend(&text, WordsText("function", functions, columns),
                  functions.empty() || reducers.empty() ? "" : "\n",
                  WordsText("reducer", reducers, columns));
  if (absl::EndsWith(text, "\n\n")) text.pop_back();
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

// The operators of networks in ONNX files.
absl::Status ListOnnxOperators(const Globals& globals) {
  const std::vector<onnx::SupportedOperator> operators = onnx::SupportedOperators();
  if (globals.json) {
    Json list = Json::array();
    for (const auto& [name, limits] : operators)
      list.push_back({{"name", name}, {"limits", limits}});
    return PrintJson({{"operators", std::move(list)}});
  }
  const int columns = TerminalColumns(STDOUT_FILENO);
  // On a narrow terminal, the limits are below the name.
  const bool is_narrow = columns < 2 * kOnnxNameColumns;
  const std::string indent(is_narrow ? 4 : kOnnxNameColumns, ' ');
  const int room = std::min(kNoteColumns, columns) - static_cast<int>(indent.size());
  for (const auto& [name, limits] : operators) {
    const bool is_above = is_narrow || name.size() >= static_cast<size_t>(kOnnxNameColumns);
    const std::string begin = is_above ? absl::StrCat(name, "\n", indent)
                                       : absl::StrFormat("%-*s", kOnnxNameColumns, name);
    const std::string lines =
        absl::StrReplaceAll(Wrapped(limits, room), {{"\n", absl::StrCat("\n", indent)}});
    absl::PrintF("%s\n", absl::StripTrailingAsciiWhitespace(absl::StrCat(begin, lines)));
  }
  return absl::OkStatus();
}

struct OperatorsOptions {
  std::vector<std::string> words;
  bool onnx = false;
};

absl::Status List(const Globals& globals, const OperatorsOptions& options) {
  if (!options.onnx) return ListOperators(globals, options.words);
  if (options.words.empty()) return ListOnnxOperators(globals);
  return absl::InvalidArgumentError("--onnx lists all operators of networks; omit the operator");
}

}  // namespace

void AddOperators(Command& app, Globals& globals) {
  Command& command = app.AddCommand(
      "operators", "List the operators, and the functions and reducers of workloads");
  auto options = std::make_shared<OperatorsOptions>();
  command.Add("operator", options->words,
              "OP shows what its keys mean; OP key=value... also shows shapes, work and stages; a "
              "function or reducer of workloads shows its operands");
  command.AddFlag("--onnx", options->onnx,
                  "List the operators of networks in ONNX files, with their limits");
  CompleteWithoutTarget(command, globals,
                        "Examples:\n"
                        "  hone operators\n"
                        "  hone operators --onnx\n"
                        "  hone operators conv2d\n"
                        "  hone operators reduce_max    (what it does with NaN)\n"
                        "  hone operators argmax        (the operator and the reducer)\n"
                        "  hone operators conv2d n=1 h=56 w=56 ci=64 co=64 k=3 p=1\n"
                        "  hone operators --json | jq -r '.operators[].name'",
                        [&globals, options] { return List(globals, *options); });
}

}  // namespace hone::cli
