#include "client/cli/workload_argument.h"

#include <iostream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/operator/operator.h"

namespace hone::cli {

bool NamesFile(absl::Span<const std::string> words) {
  if (words.size() != 1) return false;
  const std::string& word = words[0];
  return word == "-" || absl::StrContains(word, '/') || absl::EndsWith(word, ".hone") ||
         absl::EndsWith(word, ".trace");
}

absl::StatusOr<std::string> ReadTextArgument(const std::string& path) {
  std::string text;
  if (path == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  } else {
    absl::StatusOr<std::string> content = ReadFile(path);
    if (!content.ok()) return absl::InvalidArgumentError(content.status().message());
    text = *std::move(content);
  }
  if (absl::StrContains(text, '\0'))
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a text file"));
  return text;
}

absl::StatusOr<WorkloadArgument> ParseWorkloadArgument(const std::string& path,
                                                       const std::string& text) {
  absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(text);
  if (!workload.ok()) {
    return absl::Status(workload.status().code(),
                        absl::StrCat(path, ":", workload.status().message()));
  }
  WorkloadArgument argument;
  argument.title = path;
  argument.workload = *std::move(workload);
  argument.text = argument.workload.ToText();
  return argument;
}

absl::StatusOr<WorkloadArgument> ReadWorkloadArgument(absl::Span<const std::string> words) {
  if (words.empty()) {
    return absl::InvalidArgumentError(
        "a workload is missing: an operator with its shape, as in \"matmul m=512 n=512 k=512\", or "
        "a file, as in "
        "\"mine.hone\"");
  }
  if (NamesFile(words)) {
    HONE_ASSIGN_OR_RETURN(const std::string text, ReadTextArgument(words[0]));
    return ParseWorkloadArgument(words[0], text);
  }
  absl::StatusOr<ir::Workload> workload = op::BuildWorkload(words[0], words.subspan(1));
  // To a person an operator that does not exist is a wrong word, not something that is not known
  // yet.
  if (!workload.ok()) return absl::InvalidArgumentError(workload.status().message());
  WorkloadArgument argument;
  argument.title = absl::StrJoin(words, " ");
  argument.workload = *std::move(workload);
  argument.text = argument.workload.ToText();
  return argument;
}

std::string DescribeWorkload(const ir::Workload& workload) {
  const auto types = [&](const std::vector<ir::BufferId>& ids) {
    std::vector<std::string> texts;
    for (const ir::BufferId id : ids)
      texts.push_back(ir::TypeText(workload.tensors[id].dtype, workload.tensors[id].shape));
    return absl::StrJoin(texts, ", ");
  };
  return absl::StrCat(workload.name, "(", types(workload.Inputs()), ") -> ",
                      types(workload.Outputs()));
}

std::string DescribeWorkloadText(const std::string& text) {
  const absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(text);
  if (workload.ok()) return DescribeWorkload(*workload);
  const std::vector<std::string> lines = absl::StrSplit(text, absl::MaxSplits('\n', 1));
  return lines[0];
}

}  // namespace hone::cli
