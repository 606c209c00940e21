#include "client/cli/network_error.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/network_kernels.h"
#include "client/cli/network_timing.h"
#include "client/network/runner.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "common/ir/element_bytes.h"
#include "common/schedule/rewrites_of.h"
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

}  // namespace

double ErrorOf(const graph::TensorType& type, absl::string_view got, absl::string_view expected) {
  double difference = 0, largest = 0;
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double a = ir::ReadElement(type.dtype, got.data(), i).real();
    const double b = ir::ReadElement(type.dtype, expected.data(), i).real();
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a != b)
      difference = std::max(difference, std::isfinite(a - b) ? std::abs(a - b) : INFINITY);
    if (std::isfinite(b)) largest = std::max(largest, std::abs(b));
  }
  return difference == 0 ? 0 : largest == 0 ? INFINITY : difference / largest;
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
  HONE_ASSIGN_OR_RETURN(std::vector<network::NetworkKernel> loaded,
                        LoadOrDraftKernels(session, changed, /*tolerance=*/0, deadline));
  std::vector<network::NetworkKernel> strict(kernels.begin(), kernels.end());
  auto next = loaded.begin();
  for (size_t t = 0; t < algorithms.size(); ++t) {
    if (!algorithms[t].empty()) strict[t] = std::move(*next++);
  }
  std::vector<std::string> inputs;
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> expected,
                        OutputsOf(session, network, strict, inputs));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> got,
                        OutputsOf(session, network, kernels, inputs));
  double error = 0;
  for (size_t o = 0; o < got.size(); ++o) {
    const graph::TensorType& type = network.graph.value(network.graph.outputs[o]).type;
    error = std::max(error, ErrorOf(type, got[o], expected[o]));
  }
  return error;
}

}  // namespace hone::cli
