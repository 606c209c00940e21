// Compares kernels from `hone export` or from traces with oneDNN and OpenBLAS: in one process,
// interleaved, warm. Operation counts exclude padded taps. All sides pack constant weights ahead of
// time.

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/network/other_work.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/file.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"
#include "tests/bench/compare/comparison.h"

namespace hone::compare {
namespace {

using Json = nlohmann::ordered_json;

// Loads a folder from `hone export`, or a trace file.
absl::StatusOr<HoneSource> Load(const std::string& path, int threads) {
  if (path.ends_with(".trace")) return BuildTrace(path, threads);
  return FindExported(path);
}

struct Arguments {
  std::vector<std::string> paths;
  std::vector<std::string> tuned;
  int threads = 0;
  bool json = false;
  bool lines = false;
  int block_ms = 25;
  CompareOptions options;
};

absl::StatusOr<Json> ReadTuned(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Json tuned = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!tuned.is_object())
    return absl::InvalidArgumentError(absl::StrCat(path, " is not what hone tune --json prints"));
  return tuned;
}

// Kernels of one workload are compared together, wherever they are in the list.
struct Group {
  std::vector<HoneSource> sources;
  std::optional<Json> tuned;  // of the first kernel
};

absl::StatusOr<std::vector<Group>> LoadAll(const Arguments& arguments) {
  std::vector<Group> groups;
  std::map<Digest, size_t> group_of;
  for (size_t i = 0; i < arguments.paths.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(HoneSource source, Load(arguments.paths[i], arguments.threads));
    const auto [at, is_new] = group_of.emplace(source.workload.StructuralDigest(), groups.size());
    if (is_new) groups.emplace_back();
    Group& group = groups[at->second];
    group.sources.push_back(std::move(source));
    if (is_new && !arguments.tuned.empty()) {
      HONE_ASSIGN_OR_RETURN(group.tuned, ReadTuned(arguments.tuned[i]));
    }
  }
  return groups;
}

// More than this part of the machine's cores, used by other programs, makes the speeds too low.
constexpr double kDisturbs = 0.1;

// Says that other programs disturbed a comparison; "" if they did not.
std::string Disturbance(const cli::OtherWork& work) {
  const double cores = target::DetectHost().cores, used = work.Cores().value_or(0);
  if (used <= kDisturbs * cores) return "";
  return absl::StrFormat(
      "note: other programs used %.1f of %.0f cores, so these speeds are too low", used, cores);
}

// Prints each comparison when it is done, or all of them as one JSON object at the end.
absl::Status Run(const Arguments& arguments) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Group> groups, LoadAll(arguments));
  Json list = Json::array();
  const SystemClock clock;
  for (const Group& group : groups) {
    const cli::OtherWork work(&clock);
    absl::StatusOr<Comparison> comparison =
        Compare(group.sources, arguments.threads, arguments.options);
    if (!comparison.ok())
      return absl::Status(comparison.status().code(),
                          absl::StrCat(group.sources[0].name, ": ", comparison.status().message()));
    if (group.tuned.has_value()) AddDefault(*group.tuned, *comparison);
    if (arguments.json) {
      list.push_back(ToJson(*comparison));
    } else if (arguments.lines) {
      std::printf("%s\n", Json({{"comparison", ToJson(*comparison)}}).dump().c_str());
    } else {
      std::printf("%s\n", ToTable(*comparison).c_str());
      if (const std::string note = Disturbance(work); !note.empty())
        std::printf("%s\n\n", note.c_str());
    }
    std::fflush(stdout);
  }
  if (arguments.json) {
    const Json all = {{"target", target::DetectHost().Key()}, {"comparisons", std::move(list)}};
    std::printf("%s\n", all.dump().c_str());
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Arguments arguments;
  arguments.threads = target::DetectHost().cores;
  Command app(
      "Compares kernels of Hone with oneDNN and OpenBLAS, interleaved in one process.\n\n"
      "  compare DIR               what hone export wrote into DIR\n"
      "  compare tests/bench/traces/*.trace    hand-written schedules, built here\n"
      "  compare a.trace b.trace --threads 1   two schedules of a workload, on one core",
      "compare");
  app.Add("path", arguments.paths, "Folders that hone export wrote, or trace files", {Required()});
  app.Add("--tuned", arguments.tuned,
          "What hone tune --json printed for each path, for the row of the default");
  app.Add("--threads", arguments.threads, "Threads; all cores by default",
          {Range(1, arguments.threads)});
  app.Add("--rounds", arguments.options.timing.rounds, "Rounds of the interleaved timing",
          {Range(3, 10000)});
  app.Add("--block-ms", arguments.block_ms, "Milliseconds of one contender in a round",
          {Range(1, 1000)});
  app.Add("--bound", arguments.options.bound,
          "Largest difference of outputs for inputs in [-1, 1), by the root of the summands",
          {Positive()});
  app.AddFlag("--json", arguments.json, "Print one JSON object on one line");
  app.AddFlag("--lines", arguments.lines,
              "Print a line with a JSON object for each comparison, when it is done",
              {Excludes("--json")});
  std::string lock_path = HostLock::DefaultPath();
  app.Add("--lock", lock_path, "The host's timing lock; another file where times do not count",
          {ShowDefault()});
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  if (!arguments.tuned.empty() && arguments.tuned.size() != arguments.paths.size()) {
    std::fprintf(stderr, "compare: as many --tuned as paths are needed\n");
    return 2;
  }
  arguments.options.timing.block = absl::Milliseconds(arguments.block_ms);
  // Keeps other programs of Hone from disturbing the timing, and vice versa.
  const absl::StatusOr<HostLock> lock =
      HostLock::Acquire(HostLock::Mode::kExclusive, absl::Now() + absl::Minutes(2), lock_path);
  if (!lock.ok()) {
    std::fprintf(stderr, "compare: cannot get the timing lock: %s\n",
                 std::string(lock.status().message()).c_str());
    return 1;
  }
  if (const absl::Status status = Run(arguments); !status.ok()) {
    std::fprintf(stderr, "compare: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace hone::compare

int main(int argc, char** argv) {
  hone::compare::ChooseOpenBlasKernel(argv);
  return hone::compare::Main(argc, argv);
}
