#include "server/research/lab/claims.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "common/target/target.h"
#include "server/research/lab/compare.h"
#include "server/tuner/space/maker.h"

namespace hone::lab {
namespace {

constexpr int kPopulation = 512, kSmallPopulation = 32;
// Half of the trials of networks, which a claim looks at, are enough for 8 of each of 28 tasks.
constexpr int kSmallTrials = 32, kSmallResults = 32, kSmallNetworkTrials = 480;
constexpr size_t kSmallDevelopment = 16;  // tasks that a model learns from
constexpr int kDonorTrials = 200;
constexpr int kSampleThreads = 2;

std::string JsonOf(const ClaimRun& run) {
  const nlohmann::ordered_json line = {{"claim", run.claim},
                                       {"device", run.device},
                                       {"variant", run.variant},
                                       {"task", run.task},
                                       {"seed", run.seed},
                                       {"trials", run.trials},
                                       {"small", run.small},
                                       {"device_seconds", run.device_seconds},
                                       {"latency_ns", run.latency_ns},
                                       {"seconds", run.seconds}};
  return line.dump();
}

// Returns nullopt if the line is malformed.
std::optional<ClaimRun> RunOfLine(const std::string& text) {
  const nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) return std::nullopt;
  for (const char* key : {"claim", "device", "variant", "task"}) {
    if (!line.contains(key) || !line[key].is_string()) return std::nullopt;
  }
  for (const char* key : {"seed", "trials", "device_seconds"}) {
    if (!line.contains(key) || !line[key].is_number()) return std::nullopt;
  }
  ClaimRun run{.claim = line["claim"],
               .device = line["device"],
               .variant = line["variant"],
               .task = line["task"],
               .seed = line["seed"].get<int>(),
               .trials = line["trials"].get<int>(),
               .small = line.contains("small") && line["small"] == true,
               .device_seconds = line["device_seconds"].get<double>()};
  for (const auto& [key, values] :
       {std::pair{"latency_ns", &run.latency_ns}, {"seconds", &run.seconds}}) {
    if (!line.contains(key) || !line[key].is_array()) return std::nullopt;
    for (const nlohmann::json& value : line[key]) {
      if (!value.is_number()) return std::nullopt;
      values->push_back(value.get<double>());
    }
  }
  if (run.latency_ns.size() != run.seconds.size()) return std::nullopt;
  return run;
}

absl::StatusOr<std::vector<ClaimRun>> ReadLines(const std::string& path) {
  std::vector<ClaimRun> runs;
  if (!std::filesystem::exists(path)) return runs;
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    std::optional<ClaimRun> run = RunOfLine(std::string(line));
    if (!run.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number,
                       ": not the line of a claim's run; remove it to repeat "
                       "the run"));
    }
    runs.push_back(*std::move(run));
  }
  return runs;
}

// The file of a claim. Only runs that it lacks are made.
class Lines {
 public:
  // `small`: whether the runs are.
  static absl::StatusOr<Lines> Open(const std::string& folder, const std::string& claim,
                                    bool small) {
    HONE_RETURN_IF_ERROR(MakeDirectories(folder));
    Lines lines(absl::StrCat(folder, "/", claim, ".jsonl"), small);
    HONE_ASSIGN_OR_RETURN(const std::vector<ClaimRun> runs, ReadLines(lines.path_));
    for (const ClaimRun& run : runs) {
      if (run.small == small)
        lines.known_.insert({run.device, run.variant, run.task, run.seed, run.trials});
    }
    return lines;
  }

  bool Has(const std::string& device, const std::string& variant, const std::string& task, int seed,
           int trials) const {
    return known_.contains({device, variant, task, seed, trials});
  }
  absl::Status Append(ClaimRun run) const {
    run.small = small_;
    std::ofstream file(path_, std::ios::app);
    file << JsonOf(run) << "\n";
    file.close();
    if (file) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot write ", path_));
  }

 private:
  Lines(std::string path, bool small) : path_(std::move(path)), small_(small) {}
  std::string path_;
  bool small_;
  std::set<std::tuple<std::string, std::string, std::string, int, int>> known_;
};

// The device of runs that read a dataset.
std::string DeviceOf(absl::string_view device, const std::string& dataset) {
  return absl::StrCat(device, " ", std::filesystem::path(dataset).stem().string());
}

absl::StatusOr<ir::Workload> WorkloadOfTask(const std::string& task) {
  std::vector<std::string> words = absl::StrSplit(task, ' ');
  const std::string name = words[0];
  words.erase(words.begin());
  return op::BuildWorkload(name, words);
}

// The variants that this build has.
std::vector<ClaimVariant> AvailableVariants(const Claim& claim) {
  std::vector<ClaimVariant> available;
  for (const ClaimVariant& variant : claim.variants) {
    const absl::Status status = CheckVariant(variant);
    if (status.ok()) {
      available.push_back(variant);
    } else {
      std::fprintf(stderr, "%s: %s is left out: %s\n", claim.name.c_str(), variant.label.c_str(),
                   std::string(status.message()).c_str());
    }
  }
  return available;
}

int TrialsOf(const Claim& claim, const ClaimOptions& options) {
  if (options.trials > 0) return options.trials;
  if (options.small && claim.device == ClaimDevice::kNetworks) return kSmallNetworkTrials;
  const bool searches = claim.device != ClaimDevice::kSample;
  return options.small && searches ? std::min(kSmallTrials, claim.trials) : claim.trials;
}

int SeedsOf(const ClaimOptions& options) {
  if (options.seeds > 0) return options.seeds;
  return options.small ? 2 : 5;
}

absl::Status RunSearches(const Claim& claim, const ClaimOptions& options, Lines& lines) {
  const std::vector<ClaimVariant> variants = AvailableVariants(claim);
  const int trials = TrialsOf(claim, options);
  for (int seed = 1; seed <= SeedsOf(options); ++seed) {
    for (const std::string& task : claim.tasks) {
      for (const ClaimVariant& variant : variants) {
        if (lines.Has(ClaimDeviceName(claim.device), variant.label, task, seed, trials)) continue;
        HONE_ASSIGN_OR_RETURN(const ClaimRun run,
                              RunSearch(claim, variant, task, seed, trials,
                                        options.small ? kSmallPopulation : kPopulation));
        HONE_RETURN_IF_ERROR(lines.Append(run));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FeatureSetsOfVariants(
    const std::vector<ClaimVariant>& variants) {
  std::vector<std::string> sets;
  for (const ClaimVariant& variant : variants) {
    HONE_ASSIGN_OR_RETURN(
        const auto model,
        cost_model::CreateCostModel(variant.cost_model, {.feature_set = variant.feature_set}));
    const std::string set(model->feature_set());
    if (!set.empty() && !absl::c_linear_search(sets, set)) sets.push_back(set);
  }
  return sets;
}

// A model is trained on the development tasks and orders the candidates of the held-out ones. The
// seed is that of the model's weights and batches.
absl::Status RunInOrder(const Claim& claim, const ClaimOptions& options, Lines& lines) {
  const std::vector<ClaimVariant> variants = AvailableVariants(claim);
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> sets, FeatureSetsOfVariants(variants));
  const ReadOptions read{.results = options.small ? kSmallResults : 0};
  HONE_ASSIGN_OR_RETURN(const Sample sample,
                        ReadSample(options.sample, sets, kSampleThreads, read));
  Sample other;
  if (!options.other.empty()) {
    HONE_ASSIGN_OR_RETURN(other, ReadSample(options.other, sets, kSampleThreads, read));
    if (absl::c_all_of(other.tasks, [](const JudgedTask& task) { return task.held_out; })) {
      return absl::InvalidArgumentError(absl::StrCat(
          options.other, " has only held-out tasks, so a model can learn nothing from it"));
    }
  }
  Sample pools;
  if (!options.pools.empty()) {
    HONE_ASSIGN_OR_RETURN(pools, ReadSample(options.pools, sets, kSampleThreads, read));
  }
  const Sample& judged = options.pools.empty() ? sample : pools;
  std::string device = options.pools.empty()
                           ? DeviceOf(ClaimDeviceName(claim.device), options.sample)
                           : DeviceOf(kPoolsDevice, options.pools);
  if (!options.other.empty()) device = DeviceOf(device + " and", options.other);
  std::vector<const JudgedTask*> development, held_out;
  for (const JudgedTask& task : sample.tasks)
    if (!task.held_out && (!options.small || development.size() < kSmallDevelopment))
      development.push_back(&task);
  for (const JudgedTask& task : judged.tasks)
    if (task.held_out) held_out.push_back(&task);
  if (held_out.empty()) {
    return absl::NotFoundError(
        absl::StrCat(options.pools.empty() ? options.sample : options.pools,
                     " has no held-out task; hone-lab tasks --held-out lists them"));
  }
  if (development.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.sample,
                     " has only held-out tasks, so a model can learn nothing from it; "
                     "name it with --pools, and another one with --sample"));
  }
  const int trials = TrialsOf(claim, options);
  const auto order = [&](const ClaimVariant& variant, int seed) -> absl::Status {
    const auto is_known = [&](const JudgedTask* task) {
      return lines.Has(device, variant.label, task->name, seed, trials);
    };
    if (absl::c_all_of(held_out, is_known)) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(
        const std::unique_ptr<cost_model::CostModel> model,
        TrainModel(variant.cost_model, sample, development, variant.results,
                   variant.transfers ? &other : nullptr, static_cast<uint64_t>(seed)));
    for (const JudgedTask* task : held_out) {
      if (is_known(task)) continue;
      HONE_ASSIGN_OR_RETURN(ClaimRun run,
                            RunOnSample(claim, variant, judged, *task, seed, trials, model.get()));
      run.device = device;
      HONE_RETURN_IF_ERROR(lines.Append(run));
    }
    return absl::OkStatus();
  };
  for (const ClaimVariant& variant : variants) {
    if (!variant.transfers || !options.other.empty()) continue;
    std::fprintf(stderr, "%s: %s is left out: it needs --other\n", claim.name.c_str(),
                 variant.label.c_str());
  }
  for (int seed = 1; seed <= SeedsOf(options); ++seed) {
    for (const ClaimVariant& variant : variants) {
      if (variant.transfers && options.other.empty()) continue;
      HONE_RETURN_IF_ERROR(order(variant, seed));
    }
  }
  return absl::OkStatus();
}

absl::Status RunSchedulers(const Claim& claim, const ClaimOptions& options, Lines& lines) {
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> sets, FeatureSetsOfVariants(claim.variants));
  std::optional<Sample> sample;  // reading it takes longer than a run
  const int trials = TrialsOf(claim, options);
  const std::string device = DeviceOf(ClaimDeviceName(claim.device), options.sample);
  for (int seed = 1; seed <= SeedsOf(options); ++seed) {
    const auto is_known = [&](const ClaimVariant& variant, const std::string& task) {
      return lines.Has(device, variant.label, task, seed, trials);
    };
    const bool complete = absl::c_all_of(claim.variants, [&](const ClaimVariant& variant) {
      return absl::c_all_of(claim.tasks,
                            [&](const std::string& task) { return is_known(variant, task); });
    });
    if (complete) continue;
    if (!sample.has_value()) {
      const ReadOptions read{.results = options.small ? kSmallResults : 0};
      HONE_ASSIGN_OR_RETURN(sample, ReadSample(options.sample, sets, kSampleThreads, read));
    }
    HONE_ASSIGN_OR_RETURN(std::vector<ClaimRun> runs, RunOnNetworks(claim, *sample, seed, trials));
    for (ClaimRun& run : runs) {
      run.device = device;
      const auto variant = absl::c_find_if(
          claim.variants, [&](const ClaimVariant& each) { return each.label == run.variant; });
      if (!is_known(*variant, run.task)) HONE_RETURN_IF_ERROR(lines.Append(run));
    }
  }
  return absl::OkStatus();
}

// Returns the words that make `hone tune` use the design space of this name.
absl::StatusOr<std::vector<std::string>> SpaceWords(const ClaimVariant& variant,
                                                    const ir::Workload& workload,
                                                    const std::string& folder) {
  if (variant.only.empty()) {
    return variant.space.empty() ? std::vector<std::string>()
                                 : std::vector<std::string>{"--space", variant.space};
  }
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::TargetByName("native"));
  HONE_ASSIGN_OR_RETURN(
      const auto spaces,
      space::MakeSpaces(
          {.workload = std::make_shared<const ir::Workload>(workload), .target = &target},
          variant.space));
  for (const auto& space : spaces) {
    if (space->name() != variant.only) continue;
    const std::string path = absl::StrCat(folder, "/", space->digest(), ".trace");
    HONE_RETURN_IF_ERROR(WriteFileAtomically(path, space->text()));
    return std::vector<std::string>{"--space", absl::StrCat("trace:", path)};
  }
  return absl::NotFoundError(
      absl::StrCat(workload.name, " has no design space ", variant.only, " on this machine"));
}

// Runs `hone tune` once, or reads what an earlier run has left, also one of another claim that
// searches in the same way. `store`: that of the donor's run, or empty.
absl::StatusOr<ComparedRun> RunHone(const Claim& claim, const ClaimVariant& variant,
                                    const std::string& task, int seed, int trials,
                                    const std::string& store, const ClaimOptions& options) {
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, WorkloadOfTask(task));
  const std::string label = store.empty() ? "empty" : absl::StrCat("after ", claim.donor);
  Comparison comparison{
      .variants = {{label, variant.strategy, variant.cost_model, variant.feature_set, store}},
      .tasks = {{.name = task, .workload = workload.ToText()}},
      .trials = trials,
      .program_folder = options.program_folder,
      .work_folder = options.out + (options.small ? "/small-runs" : "/runs")};
  HONE_RETURN_IF_ERROR(MakeDirectories(comparison.work_folder));
  HONE_ASSIGN_OR_RETURN(comparison.options, SpaceWords(variant, workload, comparison.work_folder));
  return CompareOne(comparison, seed);
}

absl::Status RunOnMachine(const Claim& claim, const ClaimOptions& options, Lines& lines) {
  const std::vector<ClaimVariant> variants = AvailableVariants(claim);
  const int trials = TrialsOf(claim, options);
  const std::string device =
      absl::StrCat(ClaimDeviceName(ClaimDevice::kMachine), " ", target::DetectHost().Key());
  for (int seed = 1; seed <= SeedsOf(options); ++seed) {
    for (const std::string& task : claim.tasks) {
      for (const ClaimVariant& variant : variants) {
        if (lines.Has(device, variant.label, task, seed, trials)) continue;
        std::string store;
        if (variant.transfers) {
          HONE_ASSIGN_OR_RETURN(const ComparedRun taught,
                                RunHone(claim, variant, claim.donor, seed,
                                        options.small ? trials : kDonorTrials, "", options));
          store = taught.store;
        }
        HONE_ASSIGN_OR_RETURN(const ComparedRun run,
                              RunHone(claim, variant, task, seed, trials, store, options));
        HONE_RETURN_IF_ERROR(lines.Append({.claim = claim.name,
                                           .device = device,
                                           .variant = variant.label,
                                           .task = task,
                                           .seed = seed,
                                           .trials = trials,
                                           .latency_ns = run.latency_ns,
                                           .seconds = run.elapsed,
                                           .device_seconds = run.device_seconds}));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunClaim(const Claim& claim, const ClaimOptions& options) {
  HONE_ASSIGN_OR_RETURN(Lines lines, Lines::Open(options.out, claim.name, options.small));
  if (options.on_machine) {
    if (claim.on_machine) return RunOnMachine(claim, options, lines);
    return absl::InvalidArgumentError(
        absl::StrCat(claim.name, " is only judged on: ", ClaimDeviceName(claim.device)));
  }
  const bool simulated =
      claim.device == ClaimDevice::kSimulated || claim.device == ClaimDevice::kFrozen;
  if (simulated) return RunSearches(claim, options, lines);
  if (options.sample.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(claim.name, " needs measured candidates: name a dataset with --sample"));
  }
  if (claim.device == ClaimDevice::kSample) return RunInOrder(claim, options, lines);
  return RunSchedulers(claim, options, lines);
}

absl::StatusOr<std::vector<ClaimRun>> ReadClaimRuns(const std::string& folder) {
  std::vector<ClaimRun> all;
  for (const Claim& claim : Claims()) {
    HONE_ASSIGN_OR_RETURN(std::vector<ClaimRun> runs,
                          ReadLines(absl::StrCat(folder, "/", claim.name, ".jsonl")));
    for (ClaimRun& run : runs) all.push_back(std::move(run));
  }
  return all;
}

}  // namespace hone::lab
