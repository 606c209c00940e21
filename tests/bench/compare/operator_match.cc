#include "tests/bench/compare/operator_match.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"

namespace hone::compare {
namespace {

constexpr int64_t kMaxStride = 4;

// Returns the candidates given by the shapes; strides and paddings are tried.
std::vector<OperatorMatch> Possible(const ir::Workload& workload) {
  std::vector<OperatorMatch> possible;
  const std::vector<ir::BufferId> inputs = workload.Inputs();
  if (inputs.size() != 2) return possible;
  const ir::Shape& a = workload.tensors[inputs[0]].shape;
  const ir::Shape& b = workload.tensors[inputs[1]].shape;
  if (a.size() == 2 && b.size() == 2) {
    for (const char* op : {"matmul", "dense_relu"})
      possible.push_back({op, {{"m", a[0]}, {"n", b[1]}, {"k", a[1]}}});
  } else if (a.size() == 3 && b.size() == 3) {
    possible.push_back({"batch_matmul", {{"b", a[0]}, {"m", a[1]}, {"n", b[2]}, {"k", a[2]}}});
  } else if (a.size() == 4 && b.size() == 4) {
    for (int64_t s = 1; s <= kMaxStride; ++s) {
      for (int64_t p = 0; p <= b[0]; ++p) {
        possible.push_back({"conv2d",
                            {{"n", a[0]},
                             {"h", a[1]},
                             {"w", a[2]},
                             {"ci", a[3]},
                             {"co", b[3]},
                             {"k", b[0]},
                             {"s", s},
                             {"p", p}}});
      }
    }
  }
  return possible;
}

std::vector<std::string> Words(const OperatorMatch& match) {
  std::vector<std::string> words;
  for (const auto& [key, value] : match.keys) words.push_back(absl::StrCat(key, "=", value));
  return words;
}

const op::OperatorInfo& InfoOf(const std::string& name) {
  for (const op::OperatorInfo& info : op::Operators()) {
    if (info.name == name) return info;
  }
  std::abort();  // the workload was built from it
}

absl::StatusOr<OperatorMatch> MatchWords(const ir::Workload& workload, const std::string& text) {
  std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  OperatorMatch match{.op = words[0]};
  words.erase(words.begin());
  HONE_ASSIGN_OR_RETURN(const ir::Workload named, op::BuildWorkload(match.op, words));
  if (named.StructuralDigest() != workload.StructuralDigest())
    return absl::InvalidArgumentError(absl::StrCat(text, " is another workload than the trace's"));
  for (const std::string& word : words) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
    int64_t value = 0;
    if (absl::SimpleAtoi(parts.second, &value)) match.keys[parts.first] = value;
  }
  return match;
}

}  // namespace

int64_t OperatorMatch::operator[](const std::string& key) const {
  if (const auto given = keys.find(key); given != keys.end()) return given->second;
  for (const op::KeyInfo& info : InfoOf(op).keys) {
    if (info.name != key) continue;
    return info.default_key.empty() ? info.default_value : (*this)[info.default_key];
  }
  return 0;
}

std::string OperatorMatch::ToText() const {
  std::string text = op;
  for (const op::KeyInfo& key : InfoOf(op).keys) {
    if (const auto given = keys.find(key.name); given != keys.end())
      absl::StrAppend(&text, " ", key.name, "=", given->second);
  }
  return text;
}

absl::StatusOr<OperatorMatch> MatchOperator(const ir::Workload& workload,
                                            const std::string& words) {
  if (!words.empty()) return MatchWords(workload, words);
  const Digest digest = workload.StructuralDigest();
  for (const OperatorMatch& match : Possible(workload)) {
    const auto built = op::BuildWorkload(match.op, Words(match));
    if (built.ok() && built->StructuralDigest() == digest) return match;
  }
  return absl::UnimplementedError(
      absl::StrCat("no library operator is known for the workload ", workload.name));
}

}  // namespace hone::compare
