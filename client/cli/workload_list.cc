#include "client/cli/workload_list.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"

namespace hone::cli {
namespace {

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

bool BeginsWorkload(const std::string& word) {
  return NamesFile({&word, 1}) || NamesNetwork({&word, 1}) || op::FindOperator(word) != nullptr;
}

}  // namespace

absl::StatusOr<std::vector<WorkloadArgument>> ReadWorkloads(absl::Span<const std::string> words) {
  std::vector<std::string> all;
  for (const std::string& word : words) {
    for (std::string& part : WordsOf(word)) all.push_back(std::move(part));
  }
  std::vector<WorkloadArgument> workloads;
  size_t begin = 0;
  do {
    size_t end = begin + 1;
    while (end < all.size() && !BeginsWorkload(all[end])) ++end;
    HONE_ASSIGN_OR_RETURN(
        workloads.emplace_back(),
        ReadWorkloadArgument(absl::MakeConstSpan(all).subspan(begin, end - begin)));
    begin = end;
  } while (begin < all.size());
  return workloads;
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
    absl::StatusOr<WorkloadArgument> workload = ReadWorkloadArgument(WordsOf(line));
    if (!workload.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ":", number, ": ", workload.status().message()));
    }
    workloads.push_back(*std::move(workload));
  }
  if (workloads.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " has no workload; write one on each line, as in \"matmul m=512 n=512 k=512\""));
  }
  return workloads;
}

}  // namespace hone::cli
