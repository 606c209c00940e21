#include "tests/bench/table/markdown.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/output/format.h"

namespace hone::bench {
namespace {

std::string OperatorName(const KernelResult& kernel) {
  return kernel.op.substr(0, kernel.op.find(' '));
}
bool IsDirect(const KernelResult& kernel) {
  return OperatorName(kernel) == "conv2d" && kernel.algorithm.empty();
}
// Winograd applies to 3x3 convolutions with stride 1.
bool MayBeWinograd(const KernelResult& kernel) {
  return OperatorName(kernel) == "conv2d" && absl::StrContains(kernel.op, " k=3 s=1");
}
bool IsMatmul(const KernelResult& kernel) {
  static const std::set<std::string>* const names =
      new std::set<std::string>{"matmul", "batch_matmul", "dense_relu"};
  return names->contains(OperatorName(kernel));
}
bool MovesBytes(const KernelResult& kernel) {
  static const std::set<std::string>* const names = new std::set<std::string>{
      "softmax",         "norm", "layer_norm", "max_pool2d", "avg_pool2d", "global_avg_pool",
      "depthwise_conv2d"};
  return names->contains(OperatorName(kernel));
}
bool IsQuantized(const KernelResult& kernel) { return absl::StartsWith(kernel.op, "quantized_"); }

struct Group {
  absl::string_view title;
  bool (*has)(const KernelResult&);
};
constexpr Group kGroups[] = {
    {"Convolutions of ResNet-50, batch 1, direct", IsDirect},
    {"3x3 convolutions of stride 1, Winograd allowed", MayBeWinograd},
    {"Matrix products", IsMatmul},
    {"Rows, pooling, depthwise", MovesBytes},
    {"Quantized", IsQuantized},
};

// Speed ratio to the fastest library; 0: none.
double OverBest(const KernelResult& kernel) {
  double least = 0;
  for (const auto& [library, ratio] : kernel.over)
    least = least == 0 ? ratio : std::min(least, ratio);
  return least;
}

// The fastest kernel of each operator.
std::vector<KernelResult> FastestOf(const std::vector<KernelResult>& kernels) {
  std::vector<KernelResult> fastest;
  for (const KernelResult& kernel : kernels) {
    const auto same = std::find_if(fastest.begin(), fastest.end(), [&](const KernelResult& other) {
      return other.op == kernel.op;
    });
    if (same == fastest.end()) {
      fastest.push_back(kernel);
    } else if (kernel.latency_ns < same->latency_ns) {
      *same = kernel;
    }
  }
  return fastest;
}

std::vector<KernelResult> Select(const Results& results, const Group& group, int threads) {
  std::vector<KernelResult> selected;
  for (const KernelResult& kernel : results.kernels) {
    if (kernel.threads == threads && group.has(kernel)) selected.push_back(kernel);
  }
  return selected;
}

std::string Ratio(double ratio) { return ratio == 0 ? "" : absl::StrFormat("%.2f", ratio); }
std::string Share(double share) {
  return share == 0 ? "" : absl::StrFormat("%.0f %%", 100 * share);
}

void AppendSummary(const Results& results, const std::set<int>& threads, std::string& text) {
  absl::StrAppend(
      &text,
      "## Summary\n\n"
      "| group | operators | threads | over the library: geometric mean | least | share "
      "of FMA peak: geometric mean | least | of copy rate: least |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const Group& group : kGroups) {
    for (const int t : threads) {
      const std::vector<KernelResult> kernels = FastestOf(Select(results, group, t));
      if (kernels.empty()) continue;
      double over = 0, least_over = HUGE_VAL, share = 0, least_share = HUGE_VAL;
      double least_copy = HUGE_VAL;
      int compared = 0;
      for (const KernelResult& kernel : kernels) {
        share += std::log(kernel.share_of_peak);
        least_share = std::min(least_share, kernel.share_of_peak);
        least_copy = std::min(least_copy, kernel.share_of_copy);
        const double ratio = OverBest(kernel);
        if (ratio == 0) continue;
        ++compared;
        over += std::log(ratio);
        least_over = std::min(least_over, ratio);
      }
      const auto count = static_cast<double>(kernels.size());
      absl::StrAppend(&text, "| ", group.title, " | ", kernels.size(), " | ", t, " | ",
                      compared == 0 ? "" : Ratio(std::exp(over / compared)), " | ",
                      compared == 0 ? "" : Ratio(least_over), " | ", Share(std::exp(share / count)),
                      " | ", Share(least_share), " | ", Share(least_copy), " |\n");
    }
  }
}

void AppendKernels(const Results& results, const std::set<int>& threads, std::string& text) {
  const auto append = [&](absl::string_view title, const std::vector<KernelResult>& kernels) {
    absl::StrAppend(&text, "\n## ", title, "\n\n| operator | trace | threads | latency | share of ",
                    "FMA peak | of copy rate | x oneDNN | x OpenBLAS |\n|---|---|---|---|---|---|",
                    "---|---|\n");
    for (const KernelResult& kernel : kernels) {
      const auto over = [&](const char* library) {
        const auto at = kernel.over.find(library);
        return at == kernel.over.end() ? "" : Ratio(at->second);
      };
      absl::StrAppend(&text, "| ", kernel.op, " | ", kernel.trace, " | ", kernel.threads, " | ",
                      cli::FormatLatency(kernel.latency_ns), " | ", Share(kernel.share_of_peak),
                      " | ", Share(kernel.share_of_copy), " | ", over("oneDNN"), " | ",
                      over("OpenBLAS"), " |\n");
    }
  };
  std::set<std::pair<std::string, int>> listed;
  for (const Group& group : kGroups) {
    std::vector<KernelResult> kernels;
    for (const int t : threads) {
      for (KernelResult& kernel : Select(results, group, t)) {
        if (listed.emplace(kernel.trace, t).second) kernels.push_back(std::move(kernel));
      }
    }
    if (!kernels.empty()) append(group.title, kernels);
  }
  std::vector<KernelResult> others;
  for (const KernelResult& kernel : results.kernels) {
    if (std::none_of(std::begin(kGroups), std::end(kGroups),
                     [&](const Group& group) { return group.has(kernel); }))
      others.push_back(kernel);
  }
  if (!others.empty()) append("Others", others);
}

void AppendCandidates(const Results& results, std::string& text) {
  if (results.candidates.empty()) return;
  absl::StrAppend(&text,
                  "\n## Candidates before they are timed\n\nRandom candidates of all design spaces "
                  "of the operator: compiling is replay, lowering, LLVM and linking, one at a "
                  "time.\n\n| operator | candidates | compile: median | p99 | replay: median | p99 "
                  "| per further primitive | bytes of a candidate |\n|---|---|---|---|---|---|---|"
                  "---|\n");
  for (const CandidateResult& line : results.candidates) {
    absl::StrAppend(
        &text, "| ", line.op, " | ", line.samples, " | ",
        absl::StrFormat("%.1f ms | %.1f ms | %.1f us | %.1f us | %.2f us | %.0f |\n",
                        line.compile_median_ms, line.compile_p99_ms, line.replay_median_us,
                        line.replay_p99_us, line.replay_us_per_primitive, line.decision_bytes));
  }
}

}  // namespace

std::string ToMarkdown(const Results& results, absl::string_view notes) {
  std::set<int> threads;
  for (const KernelResult& kernel : results.kernels) threads.insert(kernel.threads);
  std::string text = absl::StrCat(
      "# Kernels of hand-written traces against the libraries\n\nMachine: ", results.machine.cpu,
      ", ", results.machine.cores, " cores (", results.machine.target, "). ", results.machine.date,
      ".\n\nRegenerate with `tests/bench/run.sh`: every trace of `tests/bench/traces`, interleaved "
      "with oneDNN, OpenBLAS, multiply-adds in registers (the peak) and a copy of as many bytes, "
      "in "
      "one process, warm; medians over the rounds. Constant weights are packed ahead of time on "
      "both sides, convolutions of oneDNN are direct, FLOPs are by formula without padded taps. "
      "Ratios above 1: Hone is faster.\n\n");
  AppendSummary(results, threads, text);
  AppendKernels(results, threads, text);
  AppendCandidates(results, text);
  if (!notes.empty()) absl::StrAppend(&text, "\n", notes);
  return text;
}

}  // namespace hone::bench
