#include "common/operator/operator.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace hone::op {
namespace {

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const int next = std::min({row[j] + 1, row[j + 1] + 1, diagonal + (a[i] != b[j])});
      diagonal = row[j + 1];
      row[j + 1] = next;
    }
  }
  return row.back();
}

std::string Suggestion(absl::string_view word, absl::Span<const std::string> known) {
  const std::string nearest = Nearest(word, known);
  return nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?");
}

}  // namespace

const std::vector<OperatorInfo>& Operators() {
  static const auto* const operators = new std::vector<OperatorInfo>{
      {"batch_matmul", "C[b, m, n] = A[b, m, k] x B[b, k, n]",
       {{"b", "batch"}, {"m", "rows of A and C"}, {"n", "columns of B and C"}, {"k", "columns of A, rows of B"}}, BatchMatmul},
      {"conv2d", "Y[n, oh, ow, co] = X[n, h, w, ci] * W[k, k, ci, co] (NHWC; W constant)",
       {{"n", "batch"}, {"h", "input height"}, {"w", "input width"}, {"ci", "input channels"}, {"co", "output channels"},
        {"k", "kernel height and width"}, {"s", "stride", 1}, {"p", "padding on each side", 0, 0}}, Conv2d},
      {"dense_relu", "D[m, n] = max(A[m, k] x W[k, n], 0) (W constant)",
       {{"m", "rows"}, {"n", "output features"}, {"k", "input features"}}, DenseRelu},
      {"matmul", "C[m, n] = A[m, k] x B[k, n]",
       {{"m", "rows of A and C"}, {"n", "columns of B and C"}, {"k", "columns of A, rows of B"}}, Matmul},
  };
  return *operators;
}

std::string Nearest(absl::string_view word, absl::Span<const std::string> known) {
  std::string best;
  int best_distance = std::max<int>(2, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string& candidate : known) {
    const int distance = EditDistance(word.substr(0, 64), candidate);
    if (distance < best_distance && distance < static_cast<int>(candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

absl::StatusOr<ir::Workload> BuildWorkload(absl::string_view name, absl::Span<const std::string> words) {
  const auto& operators = Operators();
  const auto info = std::find_if(operators.begin(), operators.end(), [&](const auto& o) { return o.name == name; });
  if (info == operators.end()) {
    std::vector<std::string> names;
    for (const OperatorInfo& o : operators) names.push_back(o.name);
    return absl::NotFoundError(absl::StrCat("unknown operator '", name, "'", Suggestion(name, names)));
  }
  std::vector<std::string> keys;
  for (const KeyInfo& key : info->keys) keys.push_back(key.name);
  Arguments arguments;
  bool dtype_given = false;
  for (const std::string& word : words) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const auto [key, value] = pair;
    if (!absl::StrContains(word, '=') || key.empty() || value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("'", word, "' is not of the form key=value"));
    }
    if (key == "dtype") {
      if (dtype_given) return absl::InvalidArgumentError("key 'dtype' is given twice");
      dtype_given = true;
      HONE_ASSIGN_OR_RETURN(arguments.dtype, ir::DTypeFromName(value));
      if (arguments.dtype == ir::DType::kBool) return absl::InvalidArgumentError("dtype bool has no arithmetic");
      continue;
    }
    const auto known = std::find_if(info->keys.begin(), info->keys.end(), [&](const KeyInfo& k) { return k.name == key; });
    if (known == info->keys.end()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " has no key '", key, "'", Suggestion(key, keys)));
    }
    int64_t number = 0;
    if (!absl::SimpleAtoi(value, &number)) {
      return absl::InvalidArgumentError(absl::StrCat("key '", key, "': '", value, "' is not a whole number that fits in 64 bits"));
    }
    if (number < known->minimum) {
      return absl::InvalidArgumentError(absl::StrCat("key '", key, "' is ", number, "; it must be at least ", known->minimum));
    }
    if (number > ir::kMaxElements) {
      return absl::InvalidArgumentError(absl::StrCat("key '", key, "' is ", number, "; at most ", ir::kMaxElements, " is supported"));
    }
    if (!arguments.values.emplace(std::string(key), number).second) {
      return absl::InvalidArgumentError(absl::StrCat("key '", key, "' is given twice"));
    }
  }
  for (const KeyInfo& key : info->keys) {
    if (arguments.values.contains(key.name)) continue;
    if (key.default_value < 0) {
      return absl::InvalidArgumentError(absl::StrCat(name, " needs key '", key.name, "' (", key.meaning, ")"));
    }
    arguments.values[key.name] = key.default_value;
  }
  return info->build(arguments);
}

}  // namespace hone::op
