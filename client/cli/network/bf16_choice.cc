#include "client/cli/network/bf16_choice.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/exit_code.h"
#include "client/cli/network/network_timing.h"
#include "client/cli/network/numeric_error.h"
#include "client/cli/output/format.h"
#include "client/cli/output/terminal.h"
#include "client/network/graph/pass/bf16_tensors.h"
#include "client/network/plan/plan.h"
#include "client/network/plan/runner.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

using graph::ValueId;
using Views = std::vector<absl::string_view>;

// The largest relative error of rounding to bf16. With a smaller tolerance, hardly any tensor of a
// network could be in bf16.
constexpr double kRoundingError = 0x1p-9;
constexpr size_t kMostRuns = 64;  // in which each has one group of tensors in bf16
constexpr int kMostAttempts = 3;  // to build a network whose error is small enough
constexpr double kLeastGain = 1.02;
// For the comparison of the speeds.
constexpr int kLeastRounds = 5, kMostRounds = 101;
constexpr absl::Duration kCompareTime = absl::Seconds(2);

Views ViewsOf(const std::vector<std::string>& tensors) { return {tensors.begin(), tensors.end()}; }

NetworkArgument WithGraph(const NetworkArgument& network, graph::DividedGraph divided) {
  NetworkArgument changed = network;
  changed.graph = std::move(divided.graph);
  changed.partition = std::move(divided.partition);
  changed.tasks = ArgumentsOf(changed.partition);
  changed.in_bf16 = true;
  return changed;
}

// A network that rounds chosen tensors (graph::RoundOnDemand), and its error for each choice.
class RoundedNetwork {
 public:
  static absl::StatusOr<std::unique_ptr<RoundedNetwork>> Create(
      Session& session, const NetworkArgument& network, const NetworkKernels& kernels,
      const std::vector<ValueId>& tensors, const std::vector<std::string>& inputs,
      const std::vector<std::string>& expected) {
    HONE_ASSIGN_OR_RETURN(graph::DividedGraph rounding,
                          graph::RoundOnDemand({network.graph, network.partition}, tensors));
    const NetworkArgument changed = WithGraph(network, std::move(rounding));
    std::vector<network::NetworkKernel> all = kernels.list;
    const std::vector<WorkloadArgument> added(
        changed.tasks.begin() + static_cast<int64_t>(all.size()), changed.tasks.end());
    HONE_ASSIGN_OR_RETURN(NetworkKernels loaded,
                          LoadOrDraftKernels(session, added, /*tolerance=*/0));
    std::move(loaded.list.begin(), loaded.list.end(), std::back_inserter(all));
    auto made = std::make_unique<RoundedNetwork>();
    made->network_ = &network;
    made->inputs_ = &inputs;
    made->expected_ = &expected;
    made->tensors_ = tensors.size();
    HONE_ASSIGN_OR_RETURN(made->runner_, MakeRunner(changed, all, {}));
    return made;
  }

  // The error if these tensors, by their places in the list, are in bf16.
  absl::StatusOr<double> ErrorOf(const std::vector<size_t>& tensors) {
    std::vector<std::string> flags(tensors_, std::string(1, '\0'));
    for (const size_t t : tensors) flags[t][0] = '\1';
    Views views = ViewsOf(*inputs_);
    for (const std::string& flag : flags) views.push_back(flag);
    HONE_ASSIGN_OR_RETURN(const TimedRun run, RunTimed(*runner_, views, /*steps=*/false));
    return LargestError(*network_, run.outputs, *expected_);
  }

 private:
  const NetworkArgument* network_ = nullptr;
  const std::vector<std::string>*inputs_ = nullptr, *expected_ = nullptr;
  size_t tensors_ = 0;
  std::unique_ptr<network::Runner> runner_;
};

// Chooses tensors whose error is at most the tolerance. They are found in this order: those that
// cause the smallest errors alone first.
class TensorChoice {
 public:
  TensorChoice(RoundedNetwork& rounded, size_t tensors, double tolerance)
      : rounded_(rounded), tensors_(tensors), tolerance_(tolerance) {}

  // The places of the tensors in bf16; empty if none may be.
  absl::StatusOr<std::vector<size_t>> First() {
    std::vector<size_t> all(tensors_);
    std::iota(all.begin(), all.end(), 0);
    HONE_ASSIGN_OR_RETURN(const double error, rounded_.ErrorOf(all));
    if (error <= tolerance_) {
      chosen_ = 1;
      groups_ = {all};
      return all;
    }
    HONE_RETURN_IF_ERROR(SortGroups());
    size_t low = 0, high = groups_.size();  // `low` groups hold the tolerance
    while (low + 1 < high) {
      const size_t middle = (low + high) / 2;
      HONE_ASSIGN_OR_RETURN(const double partial, rounded_.ErrorOf(Joined(middle)));
      (partial <= tolerance_ ? low : high) = middle;
    }
    chosen_ = low;
    return Joined(low);
  }

  // Fewer tensors, because the network that was built has a larger error.
  absl::StatusOr<std::vector<size_t>> Fewer() {
    if (groups_.size() <= 1 && tensors_ > 1) {
      HONE_RETURN_IF_ERROR(SortGroups());
      chosen_ = groups_.size();
    }
    chosen_ = chosen_ * 3 / 4;
    return Joined(chosen_);
  }

 private:
  absl::Status SortGroups() {
    const size_t groups = std::min(tensors_, kMostRuns);
    std::vector<std::pair<double, std::vector<size_t>>> found;
    for (size_t g = 0; g < groups; ++g) {
      std::vector<size_t> group;
      for (size_t t = g * tensors_ / groups; t < (g + 1) * tensors_ / groups; ++t)
        group.push_back(t);
      HONE_ASSIGN_OR_RETURN(const double error, rounded_.ErrorOf(group));
      found.emplace_back(error, std::move(group));
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    groups_.clear();
    for (auto& [error, group] : found) groups_.push_back(std::move(group));
    return absl::OkStatus();
  }

  std::vector<size_t> Joined(size_t groups) const {
    std::vector<size_t> tensors;
    for (size_t g = 0; g < groups; ++g)
      tensors.insert(tensors.end(), groups_[g].begin(), groups_[g].end());
    std::sort(tensors.begin(), tensors.end());
    return tensors;
  }

  RoundedNetwork& rounded_;
  const size_t tensors_;
  const double tolerance_;
  std::vector<std::vector<size_t>> groups_;
  size_t chosen_ = 0;  // groups
};

// The median of the quotients of alternating runs.
absl::StatusOr<double> SpeedUpOf(network::Runner& f32, network::Runner& bf16, const Views& inputs) {
  std::vector<double> quotients;
  const absl::Time end = absl::Now() + kCompareTime;
  for (int round = 0; round < kMostRounds; ++round) {
    if (round >= kLeastRounds && absl::Now() > end) break;
    double ns[2] = {};
    for (const int which : {round % 2, 1 - round % 2}) {
      network::Runner& runner = which == 0 ? f32 : bf16;
      HONE_RETURN_IF_ERROR(RunTimed(runner, inputs, /*steps=*/false).status());  // fills the caches
      HONE_ASSIGN_OR_RETURN(const TimedRun run, RunTimed(runner, inputs, /*steps=*/false));
      ns[which] = run.ns;
    }
    quotients.push_back(ns[0] / ns[1]);
  }
  std::nth_element(quotients.begin(), quotients.begin() + quotients.size() / 2, quotients.end());
  return quotients[quotients.size() / 2];
}

int64_t BytesOf(const graph::Graph& graph, absl::Span<const ValueId> tensors) {
  int64_t bytes = 0;
  for (const ValueId id : tensors) bytes += graph.value(id).type.bytes();
  return bytes;
}

}  // namespace

void AddBetween(Command& command, std::string& between) {
  command.Add("--between", between,
              "How a network's tensors between kernels are stored if --tolerance is 2e-3 or more: "
              "auto: in bf16 where the error of the outputs allows it, if that is faster here; "
              "bf16: where the error allows it; f32. The error is that for the given inputs; hone "
              "export uses random ones",
              {OneOf({"auto", "bf16", "f32"}), ShowDefault()});
}

void PrintBf16(const Bf16Choice& choice, double tolerance, bool given_inputs) {
  if (!choice.considered) return;
  if (choice.in_bf16 == 0) {
    PrintWrapped(stderr, absl::StrCat("all tensors between kernels are in f32: ", choice.reason));
    return;
  }
  std::string text = absl::StrFormat(
      "%d of %s between kernels %s in bf16, %s instead of %s; the outputs differ by at most %.1e "
      "of their largest magnitude from those in f32, for %s inputs (tolerance %g)",
      choice.in_bf16, Counted(choice.candidates, "tensor"), choice.in_bf16 == 1 ? "is" : "are",
      FormatBytes(choice.bytes), FormatBytes(choice.f32_bytes), choice.error,
      given_inputs ? "the given" : "random", tolerance);
  if (choice.gain > 0)
    absl::StrAppendFormat(&text, "; the network is %.2f times as fast", choice.gain);
  if (choice.untuned > 0) {
    absl::StrAppend(&text, "; tune the ", Counted(choice.untuned, "task"),
                    " without a confirmed schedule with: ", choice.tune);
  }
  PrintWrapped(stderr, text);
}

Json ToJson(const Bf16Choice& choice) {
  return {{"tensors", choice.candidates},    {"tensors_in_bf16", choice.in_bf16},
          {"bytes", choice.bytes},           {"bytes_in_f32", choice.f32_bytes},
          {"error", choice.error},           {"gain", choice.gain},
          {"untuned_tasks", choice.untuned}, {"why_f32", choice.reason}};
}

absl::StatusOr<bool> CanChooseBf16(Session& session, double tolerance) {
  HONE_ASSIGN_OR_RETURN(const std::string key, session.TargetKey());
  return tolerance >= kRoundingError && session.lock() == nullptr &&
         !session.device().has_value() && session.IsHere(key);
}

absl::StatusOr<Bf16Choice> ChooseBf16(Session& session, const NetworkKernelOptions& options,
                                      absl::Span<const absl::string_view> inputs,
                                      NetworkArgument& network, NetworkKernels& kernels) {
  Bf16Choice choice;
  HONE_ASSIGN_OR_RETURN(const bool can, CanChooseBf16(session, options.tolerance));
  if (!can || options.between == "f32") return choice;
  choice.considered = true;
  const graph::DividedGraph divided = {network.graph, network.partition};
  const graph::PartitionOptions division = network::PartitionOptionsFor(target::Kind::kCpu);
  const std::vector<ValueId> between = graph::TensorsBetweenKernels(divided);
  HONE_ASSIGN_OR_RETURN(const graph::Bf16Network all,
                        graph::StoreInBf16(divided, between, division));
  const std::vector<ValueId>& tensors = all.tensors;
  choice.candidates = static_cast<int64_t>(tensors.size());
  choice.bytes = choice.f32_bytes = BytesOf(network.graph, tensors);
  if (tensors.empty()) {
    choice.reason = "the network has none that its kernels could store in bf16";
    return choice;
  }

  // The outputs of strict kernels.
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<network::Runner> plain,
                        MakeRunner(network, kernels.list, {}));
  std::vector<std::string> used(inputs.begin(), inputs.end());
  if (used.empty()) used = SomeInputs(*plain);
  const Views views = ViewsOf(used);
  HONE_ASSIGN_OR_RETURN(const NetworkKernels strict,
                        LoadOrDraftKernels(session, network.tasks, /*tolerance=*/0));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<network::Runner> reference,
                        MakeRunner(network, strict.list, {}));
  HONE_ASSIGN_OR_RETURN(const TimedRun expected, RunTimed(*reference, views, /*steps=*/false));

  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<RoundedNetwork> rounded,
      RoundedNetwork::Create(session, network, kernels, tensors, used, expected.outputs));
  TensorChoice chosen(*rounded, tensors.size(), options.tolerance);
  HONE_ASSIGN_OR_RETURN(std::vector<size_t> places, chosen.First());
  for (int attempt = 0; attempt < kMostAttempts && !places.empty(); ++attempt) {
    std::vector<ValueId> some;
    for (const size_t place : places) some.push_back(tensors[place]);
    HONE_ASSIGN_OR_RETURN(graph::Bf16Network narrow, graph::StoreInBf16(divided, some, division));
    if (narrow.tensors.empty()) break;
    NetworkArgument changed = WithGraph(network, std::move(narrow.divided));
    NetworkKernelOptions load = options;
    load.draft = true;  // other tasks than those of the network in f32, which may be tuned
    HONE_ASSIGN_OR_RETURN(NetworkKernels loaded, LoadNetworkKernels(session, changed, load));
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<network::Runner> runner,
                          MakeRunner(changed, loaded.list, {}));
    HONE_ASSIGN_OR_RETURN(const TimedRun run, RunTimed(*runner, views, /*steps=*/false));
    choice.error = LargestError(network, run.outputs, expected.outputs);
    if (choice.error > options.tolerance) {
      HONE_ASSIGN_OR_RETURN(places, chosen.Fewer());
      continue;
    }
    if (options.between == "auto") {
      HONE_ASSIGN_OR_RETURN(choice.gain, SpeedUpOf(*plain, *runner, views));
      if (choice.gain < kLeastGain) {
        choice.reason = absl::StrFormat(
            "with %d of %d in bf16, the network is %.2f times as fast here, too little to round "
            "for it; --between bf16 uses bf16 nevertheless",
            narrow.tensors.size(), tensors.size(), choice.gain);
        return choice;
      }
    }
    choice.in_bf16 = static_cast<int64_t>(narrow.tensors.size());
    choice.bytes -= BytesOf(network.graph, narrow.tensors) / 2;
    choice.untuned = loaded.counts.measured + loaded.counts.draft;
    if (choice.untuned > 0) choice.tune = TuneMissingCommand(changed, options.tolerance);
    network = std::move(changed);
    kernels = std::move(loaded);
    return choice;
  }
  choice.reason = absl::StrFormat("no choice of them holds the tolerance of %g", options.tolerance);
  return choice;
}

absl::StatusOr<Bf16Choice> LoadWithBf16(Session& session, const NetworkKernelOptions& options,
                                        absl::Span<const absl::string_view> inputs,
                                        NetworkArgument& network, NetworkKernels& kernels) {
  absl::StatusOr<NetworkKernels> loaded = LoadNetworkKernels(session, network, options);
  const absl::Status known = loaded.status();
  if (ExitCodeFor(known) == kExitNothingKnown && options.between == "bf16") {
    HONE_ASSIGN_OR_RETURN(const bool can, CanChooseBf16(session, options.tolerance));
    if (!can) return known;
    loaded = LoadOrDraftKernels(session, network.tasks, options.tolerance, options.deadline);
  }
  if (!loaded.ok()) return loaded.status();
  kernels = *std::move(loaded);
  HONE_ASSIGN_OR_RETURN(Bf16Choice choice, ChooseBf16(session, options, inputs, network, kernels));
  if (known.ok() || (choice.in_bf16 > 0 && kernels.counts.AnyMeasured())) return choice;
  if (choice.in_bf16 == 0) return known;
  // Says how to tune the network in bf16, unless its tasks were tuned in vain.
  HONE_RETURN_IF_ERROR(LoadNetworkKernels(session, network, options).status());
  return choice;
}

}  // namespace hone::cli
