#include "client/cli/workload_argument.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/format.h"
#include "client/cli/shell_word.h"
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
                        absl::StrCat(path, ":", workload.status().message()));
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
    const absl::string_view message = workload.status().message();
    const bool strange = absl::IsNotFound(workload.status()) ||
                         absl::StrContains(message, "has no key") ||
                         absl::StrContains(message, "not of the form");
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

}  // namespace hone::cli
