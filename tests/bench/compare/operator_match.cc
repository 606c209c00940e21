#include "tests/bench/compare/operator_match.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/operator/operator.h"

namespace hone::compare {
namespace {

constexpr int64_t kMaxStride = 4;

// What the shapes say already; strides and paddings are tried.
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

}  // namespace

std::string OperatorMatch::ToText() const {
  std::string text = op;
  for (const op::OperatorInfo& info : op::Operators()) {
    if (info.name != op) continue;
    for (const op::KeyInfo& key : info.keys) {
      const auto given = keys.find(key.name);
      if (given != keys.end()) absl::StrAppend(&text, " ", key.name, "=", given->second);
    }
  }
  return text;
}

absl::StatusOr<OperatorMatch> MatchOperator(const ir::Workload& workload) {
  const Digest digest = workload.StructuralDigest();
  for (const OperatorMatch& match : Possible(workload)) {
    const auto built = op::BuildWorkload(match.op, Words(match));
    if (built.ok() && built->StructuralDigest() == digest) return match;
  }
  return absl::UnimplementedError(
      absl::StrCat("no library operator is known for the workload ", workload.name));
}

}  // namespace hone::compare
