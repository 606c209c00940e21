#include "client/cli/network/numeric_error.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/network/network_kernels.h"
#include "client/cli/network/network_timing.h"
#include "client/network/plan/runner.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"
#include "common/schedule/trace.h"

namespace hone::cli {
namespace {

// Makes the inputs if there are none.
absl::StatusOr<std::vector<std::string>> OutputsOf(Session& session, const NetworkArgument& network,
                                                   absl::Span<const network::NetworkKernel> kernels,
                                                   std::vector<std::string>& inputs) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<network::Runner> runner,
                        MakeRunner(network, kernels, {.device = session.GpuName()}));
  if (inputs.empty()) inputs = SomeInputs(*runner);
  const std::vector<absl::string_view> views(inputs.begin(), inputs.end());
  HONE_ASSIGN_OR_RETURN(TimedRun run, RunTimed(*runner, views, /*steps=*/false));
  return std::move(run.outputs);
}

// Whole numbers are subtracted exactly, and rounded at the end.
double DifferenceOf(ir::Scalar a, ir::Scalar b) {
  if (a.is_whole() && b.is_whole()) {
    const auto x = static_cast<uint64_t>(a.whole()), y = static_cast<uint64_t>(b.whole());
    return static_cast<double>(a < b ? y - x : x - y);
  }
  const double x = a.real(), y = b.real();
  if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
  const double difference = std::abs(x - y);
  return std::isfinite(difference) ? difference : INFINITY;
}

}  // namespace

double ErrorOf(const graph::TensorType& type, absl::string_view got, absl::string_view expected) {
  return CompareOutput("", type, got, expected, {}).max_error;
}

double LargestError(const NetworkArgument& network, absl::Span<const std::string> got,
                    absl::Span<const std::string> expected) {
  double error = 0;
  for (size_t o = 0; o < got.size(); ++o) {
    const graph::TensorType& type = network.graph.value(network.graph.outputs[o]).type;
    error = std::max(error, ErrorOf(type, got[o], expected[o]));
  }
  return error;
}

OutputComparison CompareOutput(const std::string& tensor, const graph::TensorType& type,
                               absl::string_view got, absl::string_view expected,
                               const ErrorLimits& limits) {
  OutputComparison result{.tensor = tensor, .elements = type.elements()};
  const auto magnitude = [](ir::Scalar x) { return std::abs(x.real()); };
  double largest = 0;
  for (int64_t i = 0; i < result.elements; ++i) {
    const ir::Scalar element = ir::ReadElement(type.dtype, expected.data(), i);
    if (std::isfinite(element.real())) largest = std::max(largest, magnitude(element));
  }
  double most = 0, most_excess = -INFINITY;
  for (int64_t i = 0; i < result.elements; ++i) {
    const ir::Scalar a = ir::ReadElement(type.dtype, got.data(), i);
    const ir::Scalar b = ir::ReadElement(type.dtype, expected.data(), i);
    const double difference = DifferenceOf(a, b);
    if (difference == 0) continue;
    most = std::max(most, difference);
    double allowed = limits.Any() ? INFINITY : 0;
    if (a.is_whole() && limits.Any()) {
      allowed = type.dtype == ir::DType::kBool ? 0 : std::max(limits.atol, 0.0);
    } else if (limits.PerElement()) {
      allowed = std::max(limits.atol, 0.0) + std::max(limits.rtol, 0.0) * magnitude(b);
    }
    if (!a.is_whole() && limits.max_error >= 0) {
      allowed = std::min(allowed, limits.max_error * largest);
    }
    if (limits.Any() && (difference > allowed || std::isinf(difference))) ++result.beyond_limits;
    const double excess = std::isfinite(difference) ? difference - allowed : INFINITY;
    if (result.worst.has_value() && excess <= most_excess) continue;
    most_excess = excess;
    std::vector<int64_t> index(type.shape.size());
    int64_t rest = i;
    for (size_t d = index.size(); d-- > 0; rest /= type.shape[d]) index[d] = rest % type.shape[d];
    result.worst = {std::move(index), a.ToText(), b.ToText(), difference};
  }
  result.max_error = most == 0 ? 0 : largest == 0 ? INFINITY : most / largest;
  result.fails = result.beyond_limits > 0;
  return result;
}

std::string WorstText(const OutputComparison& comparison, const ErrorLimits& limits) {
  if (!comparison.worst.has_value()) return "";
  const OutputComparison::Worst& worst = *comparison.worst;
  std::string text = absl::StrFormat("%s[%s] is %s, expected %s (differs by %.3g)",
                                     comparison.tensor, absl::StrJoin(worst.index, ", "), worst.got,
                                     worst.expected, worst.difference);
  if (!limits.Any()) return text;
  absl::StrAppend(&text, "; ", comparison.beyond_limits, " of the ", comparison.elements,
                  " elements ", comparison.beyond_limits == 1 ? "exceeds" : "exceed",
                  " the limits");
  return text;
}

absl::Status CheckComparisons(absl::Span<const OutputComparison> comparisons,
                              const ErrorLimits& limits) {
  for (const OutputComparison& comparison : comparisons) {
    if (!comparison.fails) continue;
    std::string allowed;
    if (limits.max_error >= 0) absl::StrAppendFormat(&allowed, " --max-error %g", limits.max_error);
    if (limits.atol >= 0) absl::StrAppendFormat(&allowed, " --atol %g", limits.atol);
    if (limits.rtol >= 0) absl::StrAppendFormat(&allowed, " --rtol %g", limits.rtol);
    return absl::AbortedError(absl::StrFormat(
        "%s differs from the expected one by %.3g of the largest magnitude, more "
        "than%s: %s",
        comparison.tensor, comparison.max_error, allowed, WorstText(comparison, limits)));
  }
  return absl::OkStatus();
}

Json ComparisonsJson(absl::Span<const OutputComparison> comparisons) {
  Json list = Json::array();
  for (const OutputComparison& comparison : comparisons) {
    Json json = {{"tensor", comparison.tensor},
                 {"max_error", comparison.max_error},
                 {"elements", comparison.elements},
                 {"elements_beyond_limits", comparison.beyond_limits},
                 {"worst", nullptr}};
    if (const auto& worst = comparison.worst; worst.has_value()) {
      json["worst"] = {{"index", worst->index},
                       {"got", worst->got},
                       {"expected", worst->expected},
                       {"difference", worst->difference}};
    }
    list.push_back(std::move(json));
  }
  return list;
}

void AddExpected(Command& command, std::vector<std::string>& paths, ErrorLimits& limits) {
  command.Add("--expect", paths,
              "C.npy of an expected output; once for each output. Prints the largest error and the "
              "worst element",
              {OneWordPerUse()});
  command.Add("--max-error", limits.max_error,
              "With --expect, exit with 1 if a float output differs by more than this share of its "
              "largest expected magnitude, as in 1e-4, or an integer one at all",
              {Range(0.0, 1.0)});
  command.Add("--atol", limits.atol,
              "With --expect, exit with 1 unless |got - expected| <= atol + rtol * |expected| for "
              "every element, with NaN and infinities in the same places. Integers may differ by "
              "atol, booleans not at all",
              {Range(0.0, 1e300)});
  command.Add("--rtol", limits.rtol, "See --atol; the one that is not given is 0",
              {Range(0.0, 1e300)});
}

std::string AlgorithmOf(absl::string_view trace) {
  const absl::StatusOr<schedule::TraceFile> file = schedule::ParseTraceFile(trace);
  if (!file.ok()) return "";
  const auto rewrites =
      schedule::RewritesOf(file->workload, file->parsed.trace, file->parsed.decisions);
  if (!rewrites.ok()) return "";
  std::vector<std::string> names;
  for (const schedule::UsedRewrite& rewrite : *rewrites) {
    if (rewrite.tolerance == 0) continue;
    std::string& name = names.emplace_back(rewrite.name);
    for (const int64_t number : rewrite.numbers) absl::StrAppend(&name, " ", number);
  }
  return absl::StrJoin(names, ", ");
}

std::string AlgorithmsText(absl::Span<const std::string> algorithms) {
  std::map<std::string, int64_t> counts;
  for (const std::string& algorithm : algorithms) {
    if (!algorithm.empty()) ++counts[algorithm];
  }
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& count) {
    absl::StrAppend(out, count.first, " in ", Counted(count.second, "task"));
  });
}

std::string ErrorText(const absl::StatusOr<double>& error) {
  if (!error.ok()) {
    return absl::StrCat("; how much they change the outputs is not known: ",
                        error.status().message());
  }
  return absl::StrFormat(
      "; they change the outputs by at most %.1e of the largest magnitude, for random inputs",
      *error);
}

absl::StatusOr<double> ErrorOfAlgorithms(Session& session, const NetworkArgument& network,
                                         absl::Span<const network::NetworkKernel> kernels,
                                         absl::Span<const std::string> algorithms,
                                         absl::Time deadline) {
  std::vector<WorkloadArgument> changed;
  for (size_t t = 0; t < algorithms.size(); ++t) {
    if (!algorithms[t].empty()) changed.push_back(network.tasks[t]);
  }
  if (changed.empty()) return 0;
  HONE_ASSIGN_OR_RETURN(NetworkKernels loaded,
                        LoadOrDraftKernels(session, changed, /*tolerance=*/0, deadline));
  std::vector<network::NetworkKernel> strict(kernels.begin(), kernels.end());
  auto next = loaded.list.begin();
  for (size_t t = 0; t < algorithms.size(); ++t) {
    if (!algorithms[t].empty()) strict[t] = std::move(*next++);
  }
  std::vector<std::string> inputs;
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> expected,
                        OutputsOf(session, network, strict, inputs));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> got,
                        OutputsOf(session, network, kernels, inputs));
  return LargestError(network, got, expected);
}

}  // namespace hone::cli
