#include "client/cli/workload_argument.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/output/format.h"
#include "client/cli/size_list.h"
#include "client/cli/suggested_command.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/operator/operator.h"
#include "common/schedule/trace.h"

namespace hone::cli {
namespace {

// Far larger than any workload or trace. Devices such as /dev/zero have no end.
constexpr size_t kMaxTextBytes = size_t{64} << 20;
// Some editors write it at the start of a UTF-8 file.
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The hint for an unknown operator or key.
std::string KnownWords(absl::string_view op_name) {
  const op::OperatorInfo* const info = op::FindOperator(op_name);
  if (info == nullptr) {
    return "\"hone operators\" lists them; other workloads can be given as a file, as in mine.hone";
  }
  std::vector<std::string> words;
  for (const op::KeyInfo& key : info->keys) words.push_back(key.name);
  if (info->types != op::Types::kFixed) words.insert(words.end(), {"dtype", "acc"});
  return absl::StrCat(op_name, " takes ", absl::StrJoin(words, ", "));
}

// Whether every part of a word is a number: "64", "64x64x64".
std::vector<std::string> NumbersIn(absl::string_view word) {
  std::vector<std::string> numbers = absl::StrSplit(word, absl::ByAnyChar("x,*"));
  const bool all = std::all_of(numbers.begin(), numbers.end(), [](const std::string& part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), absl::ascii_isdigit);
  });
  return all ? numbers : std::vector<std::string>();
}

// "m=64 n=64 k=64" for numbers without keys, in the order of the operator's keys; "" if there are
// too many.
std::string WithKeys(const op::OperatorInfo& info, absl::Span<const std::string> words) {
  std::vector<std::string> pairs;
  for (const std::string& word : words) {
    if (absl::StrContains(word, '=')) {
      pairs.push_back(word);
      continue;
    }
    for (const std::string& number : NumbersIn(word)) {
      if (pairs.size() == info.keys.size()) return "";
      pairs.push_back(absl::StrCat(info.keys[pairs.size()].name, "=", number));
    }
  }
  return absl::StrJoin(pairs, " ");
}

bool IsUnitOfTime(absl::string_view word) {
  constexpr absl::string_view kUnits[] = {"s", "sec",    "m",      "min",  "h",  "hr",
                                          "d", "second", "minute", "hour", "day"};
  absl::ConsumeSuffix(&word, "s");
  return word.empty() || std::find(std::begin(kUnits), std::end(kUnits), word) != std::end(kUnits);
}

// Explains a word that is not a key with its value; "" if there is no better explanation than that.
std::string ExplainWord(const op::OperatorInfo& info, const std::string& word,
                        absl::Span<const std::string> words) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos) {
    if (!NumbersIn(word).empty()) {
      const std::string meant = WithKeys(info, words);
      return absl::StrCat("'", word, "' has no key",
                          meant.empty() ? "" : absl::StrCat("; perhaps ", info.name, " ", meant));
    }
    const bool is_key = std::any_of(info.keys.begin(), info.keys.end(),
                                    [&](const op::KeyInfo& key) { return key.name == word; });
    if (is_key) {
      return absl::StrCat("'", word, "' has no value; write ", word, "=VALUE without blanks");
    }
    return IsUnitOfTime(word)
               ? absl::StrCat("'", word,
                              "' is a word of its own; write a time as one word, as in --time 5m")
               : "";
  }
  if (absl::StrContains(word, ',') && absl::StrContains(word.substr(equals + 1), '=')) {
    return absl::StrCat("'", word, "' is one word; separate the keys with blanks, as in ",
                        absl::StrJoin(absl::StrSplit(word, ',', absl::SkipEmpty()), " "));
  }
  return "";
}

// Explains the words of an operator that could not be read; "" if none of them is of these kinds.
std::string ExplainWords(absl::Span<const std::string> words) {
  const op::OperatorInfo* const info = op::FindOperator(words[0]);
  if (info == nullptr) return "";
  for (const std::string& word : words.subspan(1)) {
    std::string why = ExplainWord(*info, word, words.subspan(1));
    if (!why.empty()) return why;
  }
  return "";
}

// How a model of another program becomes one that Hone reads; "" if the word names none.
std::string HowToConvert(absl::string_view word) {
  struct Format {
    absl::string_view ending, advice;
  };
  constexpr absl::string_view kTorch =
      "a PyTorch model; Hone reads ONNX: torch.onnx.export(model, inputs, \"model.onnx\") writes "
      "it";
  constexpr absl::string_view kTensorFlow =
      "a TensorFlow model; Hone reads ONNX: python -m tf2onnx.convert writes it";
  constexpr Format kFormats[] = {
      {".pt", kTorch},
      {".pth", kTorch},
      {".safetensors", kTorch},
      {".tflite", kTensorFlow},
      {".pb", kTensorFlow},
      {".h5", kTensorFlow},
      {".keras", kTensorFlow},
      {".mlmodel", "a Core ML model; Hone reads ONNX"},
      {".gguf", "a model for llama.cpp; Hone reads ONNX"},
      {".xml", "perhaps an OpenVINO model; Hone reads ONNX"},
      {".engine", "a TensorRT engine; Hone reads the ONNX file that it was built from"},
  };
  for (const Format& format : kFormats) {
    if (absl::EndsWithIgnoreCase(word, format.ending)) {
      return absl::StrCat(word, " is ", format.advice);
    }
  }
  return "";
}

// The error of a text that uses an operator like a function gets a hint at the operator's text.
std::string WithOperatorHint(absl::string_view message) {
  constexpr absl::string_view kUnknown = "unknown function '";
  const size_t begin = message.find(kUnknown);
  if (begin == absl::string_view::npos) return std::string(message);
  absl::string_view name = message.substr(begin + kUnknown.size());
  name = name.substr(0, name.find('\''));
  if (op::FindOperator(name) == nullptr) return std::string(message);
  const size_t line_end = message.find('\n');
  return absl::StrCat(message.substr(0, begin), "'", name,
                      "' is an operator and not a function: it is given by its name, as in hone "
                      "tune ",
                      name, " KEY=VALUE…, and hone show ", name,
                      " KEY=VALUE… --workload prints its stages, which can be used here",
                      line_end == absl::string_view::npos ? "" : message.substr(line_end));
}

// Whether a text is that of a list (ReadWorkloadList): its first line with a workload begins with
// an operator or names a file.
bool IsList(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    return absl::EndsWith(line, ".hone") ||
           op::FindOperator(line.substr(0, line.find(' '))) != nullptr;
  }
  return false;
}

// InvalidArgument: a file that was given as a workload is a list.
absl::Status CheckNotAList(const std::string& path, absl::string_view text) {
  if (!IsList(text)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is a list of workloads; tune, best and export read it with --file ",
                   ShellWord(path)));
}

// The same for a single word that does not look like a path. OK if it is not the name of a readable
// file.
absl::Status CheckNotAList(const std::string& word) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(word, unknown)) return absl::OkStatus();
  const absl::StatusOr<std::string> text = ReadTextArgument(word);
  return text.ok() ? CheckNotAList(word, *text) : absl::OkStatus();
}

// Splits the text of a workload into words. The name of a file may contain blanks.
std::vector<std::string> WordsOf(absl::string_view text) {
  const std::string whole(text);
  if (NamesFile({&whole, 1})) return {whole};
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

// A line without the comment at its end. A comment begins with # at the beginning of a line or
// after a blank, but the name of a file may contain both.
absl::string_view WithoutComment(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  size_t begin = line.find('#');
  while (begin != line.npos && begin > 0 && !absl::ascii_isspace(line[begin - 1])) {
    begin = line.find('#', begin + 1);
  }
  std::error_code error;
  if (begin == line.npos || (begin > 0 && std::filesystem::exists(std::string(line), error)))
    return line;
  return absl::StripAsciiWhitespace(line.substr(0, begin));
}

// A key of an operator with several sizes.
struct VaryingKey {
  size_t place = 0;  // in the words
  NamedSizes sizes;
};

// The keys of an operator that have lists or ranges of sizes. InvalidArgument: a list or range is
// wrong, or there are too many combinations.
absl::StatusOr<std::vector<VaryingKey>> VaryingKeysOf(absl::Span<const std::string> words) {
  std::vector<VaryingKey> keys;
  std::vector<NamedSizes> dimensions;
  if (words.empty() || op::FindOperator(words[0]) == nullptr) return keys;
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) continue;
    const absl::string_view value = absl::string_view(words[i]).substr(equals + 1);
    // A value with another key is an error, which ExplainWord explains.
    if (!NamesSeveralSizes(value) || absl::StrContains(value, '=')) continue;
    const absl::StatusOr<SizeList> sizes = ParseSizeList(value);
    if (!sizes.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(words[i], ": ", sizes.status().message()));
    }
    dimensions.push_back({words[i].substr(0, equals), sizes->values, sizes->weights});
    keys.push_back({i, dimensions.back()});
  }
  HONE_RETURN_IF_ERROR(CheckSizeCount(dimensions));
  return keys;
}

// Reads one workload, or an operator for several sizes: "matmul m=1,4 n=8 k=8" stands for two
// workloads.
absl::StatusOr<std::vector<WorkloadArgument>> ReadSizes(absl::Span<const std::string> words) {
  HONE_ASSIGN_OR_RETURN(const std::vector<VaryingKey> keys, VaryingKeysOf(words));
  std::vector<std::pair<std::vector<std::string>, double>> expanded = {
      {{words.begin(), words.end()}, 1}};  // with weights
  for (const VaryingKey& key : keys) {
    std::vector<std::pair<std::vector<std::string>, double>> longer;
    for (const auto& each : expanded) {
      for (size_t v = 0; v < key.sizes.values.size(); ++v) {
        longer.push_back(each);
        longer.back().first[key.place] = absl::StrCat(key.sizes.name, "=", key.sizes.values[v]);
        longer.back().second *= key.sizes.weights[v];
      }
    }
    expanded = std::move(longer);
  }
  double sum = 0;
  for (const auto& each : expanded) sum += each.second;
  std::vector<WorkloadArgument> workloads;
  for (const auto& [each, weight] : expanded) {
    HONE_ASSIGN_OR_RETURN(workloads.emplace_back(), ReadWorkloadArgument(each));
    workloads.back().budget_factor = weight * static_cast<double>(expanded.size()) / sum;
  }
  return workloads;
}

bool BeginsWorkload(const std::string& word) {
  return NamesFile({&word, 1}) || NamesNetwork({&word, 1}) || op::FindOperator(word) != nullptr;
}

}  // namespace

bool NamesFile(absl::Span<const std::string> words) {
  if (words.size() != 1) return false;
  const std::string& word = words[0];
  return word == "-" || absl::StrContains(word, '/') || absl::EndsWith(word, ".hone") ||
         absl::EndsWith(word, ".trace");
}

bool NamesNetwork(absl::Span<const std::string> words) {
  return words.size() == 1 && absl::EndsWith(words[0], ".onnx");
}

absl::StatusOr<std::string> ReadTextArgument(const std::string& path) {
  std::FILE* const file = path == "-" ? stdin : std::fopen(path.c_str(), "r");
  if (file == nullptr) {
    return absl::InvalidArgumentError(ErrnoStatus(errno, absl::StrCat("open ", path)).message());
  }
  const auto close = absl::MakeCleanup([file] {
    if (file != stdin) std::fclose(file);
  });
  std::string text;
  char piece[1 << 16];
  for (size_t size; (size = std::fread(piece, 1, sizeof(piece), file)) > 0;) {
    text.append(piece, size);
    if (text.size() > kMaxTextBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, " is not a workload or trace: it is larger than ", kMaxTextBytes >> 20, " MiB"));
    }
  }
  if (std::ferror(file) != 0) {
    return absl::InvalidArgumentError(ErrnoStatus(errno, absl::StrCat("read ", path)).message());
  }
  if (absl::StrContains(text, '\0'))
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a text file"));
  if (absl::StartsWith(text, kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

bool IsTrace(absl::string_view text) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  return std::any_of(lines.begin(), lines.end(), schedule::IsTraceHeader);
}

absl::StatusOr<WorkloadArgument> ParseWorkloadArgument(const std::string& path,
                                                       const std::string& text) {
  if (IsTrace(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     " is a trace; give the workload at its beginning in a separate file, or show "
                     "the trace with: hone show ",
                     ShellWord(path)));
  }
  absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(text);
  if (!workload.ok()) {
    HONE_RETURN_IF_ERROR(CheckNotAList(path, text));
    return absl::Status(workload.status().code(),
                        absl::StrCat(path, ":", WithOperatorHint(workload.status().message())));
  }
  WorkloadArgument argument;
  argument.title = path;
  argument.words = ShellWord(path);
  argument.workload = *std::move(workload);
  argument.text = argument.workload.ToText();
  return argument;
}

absl::StatusOr<WorkloadArgument> ReadWorkloadArgument(absl::Span<const std::string> words) {
  if (words.empty()) {
    return absl::InvalidArgumentError(
        "a workload is missing: an operator with its shape, as in \"matmul m=512 n=512 k=512\", or "
        "a file, as in \"mine.hone\"");
  }
  if (NamesNetwork(words.first(1))) {
    return absl::InvalidArgumentError(absl::StrCat(
        words[0],
        " is a network, and an operator or a FILE.hone is expected; tune, best, export, run, show "
        "and check take networks, each alone"));
  }
  if (const std::string advice = HowToConvert(words[0]); !advice.empty()) {
    return absl::InvalidArgumentError(advice);
  }
  if (NamesFile(words)) {
    HONE_ASSIGN_OR_RETURN(const std::string text, ReadTextArgument(words[0]));
    return ParseWorkloadArgument(words[0], text);
  }
  if (words.size() == 1 && absl::StrContains(words[0], ' ')) {  // quoted as one word
    HONE_RETURN_IF_ERROR(CheckNotAList(words[0]));
    const std::vector<std::string> split = absl::StrSplit(words[0], ' ', absl::SkipEmpty());
    if (split.size() > 1) return ReadWorkloadArgument(split);
  }
  if (absl::StrContains(words[0], '=')) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[0],
                     "' comes before the operator; write the operator first, as in \"matmul m=512 "
                     "n=512 k=512\""));
  }
  absl::StatusOr<ir::Workload> workload = op::BuildWorkload(words[0], words.subspan(1));
  // An unknown operator is a usage error here; NotFound is reserved for an unknown best.
  if (!workload.ok()) {
    if (words.size() == 1) HONE_RETURN_IF_ERROR(CheckNotAList(words[0]));
    const std::string explained = ExplainWords(words);
    const absl::string_view message =
        explained.empty() ? workload.status().message() : absl::string_view(explained);
    const bool strange = absl::IsNotFound(workload.status()) ||
                         absl::StrContains(message, "has no key") ||
                         absl::StrContains(message, "not of the form") || !explained.empty();
    return absl::InvalidArgumentError(strange ? WithClause(message, KnownWords(words[0]))
                                              : std::string(message));
  }
  WorkloadArgument argument;
  argument.title = absl::StrJoin(words, " ");
  argument.words = absl::StrJoin(words, " ", [](std::string* out, const std::string& word) {
    absl::StrAppend(out, ShellWord(word));
  });
  argument.workload = *std::move(workload);
  argument.text = argument.workload.ToText();
  return argument;
}

absl::StatusOr<std::vector<WorkloadArgument>> ReadWorkloads(absl::Span<const std::string> words) {
  std::vector<std::string> all;
  for (const std::string& word : words) {
    for (std::string& part : WordsOf(word)) all.push_back(std::move(part));
  }
  std::vector<WorkloadArgument> workloads;
  size_t begin = 0;
  do {
    size_t end = std::min(begin + 1, all.size());
    while (end < all.size() && !BeginsWorkload(all[end])) ++end;
    HONE_ASSIGN_OR_RETURN(std::vector<WorkloadArgument> sizes,
                          ReadSizes(absl::MakeConstSpan(all).subspan(begin, end - begin)));
    absl::c_move(sizes, std::back_inserter(workloads));
    begin = end;
  } while (begin < all.size());
  return workloads;
}

std::vector<std::string> OperatorSizes::WordsFor(int64_t value) const {
  std::vector<std::string> made = words;
  made[place] = absl::StrCat(key, "=", value);
  return made;
}

absl::StatusOr<std::optional<OperatorSizes>> ReadOperatorSizes(
    absl::Span<const std::string> words) {
  std::vector<std::string> all;
  for (const std::string& word : words) {
    for (std::string& part : WordsOf(word)) all.push_back(std::move(part));
  }
  if (absl::c_count_if(all, BeginsWorkload) != 1) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(const std::vector<VaryingKey> keys, VaryingKeysOf(all));
  if (keys.size() != 1 || keys[0].sizes.values.size() < 2) return std::nullopt;
  return OperatorSizes{keys[0].sizes.name, keys[0].sizes.values, std::move(all), keys[0].place};
}

absl::StatusOr<std::vector<WorkloadArgument>> ReadWorkloadList(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadTextArgument(path));
  const std::string name = path == "-" ? "standard input" : path;
  std::vector<WorkloadArgument> workloads;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = WithoutComment(line);
    if (line.empty()) continue;
    absl::StatusOr<std::vector<WorkloadArgument>> sizes = ReadSizes(WordsOf(line));
    if (!sizes.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ":", number, ": ", sizes.status().message()));
    }
    absl::c_move(*sizes, std::back_inserter(workloads));
  }
  if (workloads.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " has no workload; write one on each line, as in \"matmul m=512 n=512 k=512\""));
  }
  return workloads;
}

}  // namespace hone::cli
