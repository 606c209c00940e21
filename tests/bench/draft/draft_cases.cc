// Drafts random workloads of 1 to 40 stages for every preset of a target, and prints each that has
// no draft, whose draft does not compute the workload, or that takes long:
//
//   draft_cases --cases N --seed S [--target PRESET] [--check-every N] [--slow SECONDS] [--only
//   CASE] draft_cases --file WORKLOAD [--target PRESET] [--print]
//   draft_cases --trace FILE --target PRESET     estimates a schedule, such as another draft
//
// Exit code 1: some case failed.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/target/target.h"
#include "server/job/actor/compiler_environment.h"
#include "tests/server/job/search/random_workload.h"

namespace hone::job {
namespace {

struct Options {
  int cases = 100, check_every = 4;
  int only = -1;  // the number of the only case
  uint64_t seed = 1;
  double slow = 4;
  std::string target, file, trace;
  bool print = false;
};

int Estimate(const Options& options) {
  const absl::StatusOr<std::string> text = ReadFile(options.trace);
  const absl::StatusOr<double> cycles =
      text.ok() ? EstimateOf(*text, options.target) : text.status();
  if (cycles.ok()) {
    std::printf("%.4g cycles\n", *cycles);
  } else {
    std::printf("%s\n", std::string(cycles.status().message()).c_str());
  }
  return cycles.ok() ? 0 : 2;
}

int Run(const Options& options) {
  const auto environment = MakeCompilerEnvironment(/*threads=*/1);
  std::vector<std::string> presets = target::TargetNames();
  if (!options.target.empty()) presets = {options.target};
  int failed = 0, slow = 0, checked = 0;
  const auto draft = [&](const std::string& workload, const std::string& preset,
                         const std::string& what, uint64_t key, bool check) {
    DraftCase drafted;
    absl::Status status = DraftOnce(*environment, workload, preset, drafted);
    if (status.ok() && check) {
      ++checked;
      status = CheckDraft(drafted.trace, key);
    }
    const double took = drafted.spaces_s + drafted.propose_s;
    const bool is_slow = took > options.slow;
    slow += is_slow ? 1 : 0;
    failed += status.ok() ? 0 : 1;
    if (!status.ok() || is_slow || !options.file.empty()) {
      std::printf("%s %s: spaces %zu in %.2f s, proposing %.2f s, %.4g cycles: %s\n", what.c_str(),
                  preset.c_str(), drafted.spaces, drafted.spaces_s, drafted.propose_s,
                  drafted.cycles, std::string(status.message()).substr(0, 2000).c_str());
      if (!status.ok()) std::printf("%s\n", workload.c_str());
      if (options.print) std::printf("%s\n", drafted.trace.c_str());
      std::fflush(stdout);
    }
  };
  if (!options.file.empty()) {
    const absl::StatusOr<std::string> text = ReadFile(options.file);
    if (!text.ok()) return 2;
    for (const std::string& preset : presets) draft(*text, preset, options.file, 1, false);
  } else {
    Rng rng(options.seed);
    for (int number = 0; number < options.cases; ++number) {
      const std::string& preset = presets[rng.Below(presets.size())];
      const int stages = 1 + static_cast<int>(rng.Below(40));
      if (options.only >= 0 && number != options.only) continue;
      const uint64_t key = options.seed * 1000003 + number;
      draft(RandomWorkload(key, stages), preset, absl::StrCat("case ", number, " of ", stages), key,
            options.check_every > 0 && number % options.check_every == 0);
    }
  }
  std::printf("seed %llu: %d cases, %d checked, %d slow, %d failed\n",
              static_cast<unsigned long long>(options.seed), options.cases, checked, slow, failed);
  return failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace hone::job

int main(int argc, char** argv) {
  hone::job::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--print") {
      options.print = true;
      continue;
    }
    if (i + 1 == argc) return 2;
    const char* const value = argv[++i];
    if (name == "--cases") options.cases = std::atoi(value);
    if (name == "--only") options.only = std::atoi(value);
    if (name == "--check-every") options.check_every = std::atoi(value);
    if (name == "--seed") options.seed = std::strtoull(value, nullptr, 10);
    if (name == "--slow") options.slow = std::atof(value);
    if (name == "--target") options.target = value;
    if (name == "--file") options.file = value;
    if (name == "--trace") options.trace = value;
  }
  return options.trace.empty() ? hone::job::Run(options) : hone::job::Estimate(options);
}
