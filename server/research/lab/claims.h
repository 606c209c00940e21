#ifndef HONE_SERVER_RESEARCH_LAB_CLAIMS_H_
#define HONE_SERVER_RESEARCH_LAB_CLAIMS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/research/lab/judge.h"

// Claims of the literature about search, and whether they hold here. A claim is a preset: ways to
// search, tasks, and what they are compared by. Its runs are lines of JSON, which the verdicts are
// made from.
namespace hone::lab {

// Where the latencies of a claim come from.
enum class ClaimDevice {
  kSimulated,  // the draft's estimate with the constants of another machine, and noise
  kFrozen,     // a model that random candidates have trained once: the search climbs its scores
  kSample,     // the candidates of a dataset, in the order of a model's scores
  kNetworks,   // the candidates of a dataset: a task scheduler divides trials among the tasks
  kMachine,    // `hone tune` on this machine
};
const char* ClaimDeviceName(ClaimDevice device);
inline constexpr char kPoolsDevice[] = "large pools";

// A way to search.
struct ClaimVariant {
  std::string label;
  std::string strategy;                             // kSample: not read
  std::string cost_model = "xgboost", feature_set;  // "": the default one
  std::string space;                                // a maker's name; "": the default one
  std::string only;                                 // only the design space of this name; "": all
  // The model also learns the donor's results; kSample: those of another machine.
  bool transfers = false;
  int results = 0;  // kSample: the model learns at most so many results of each task; 0: all
  // kNetworks: names of server/job/scheduler. The model chooses among the candidates of each task.
  std::string scheduler, objective;
};

// Two ways to search, one of which is claimed to be better.
struct Contrast {
  enum class Measure {
    kLatency,  // the best latency after a share of the trials
    kTrials,   // trials until the baseline's final latency is reached
    kSeconds,  // the same in seconds of searching and measuring
    kMean,     // the best latency so far, a geometric mean over the seconds of the shortest run
  };
  std::string claim;             // a sentence
  std::string published;         // the published number
  std::string method, baseline;  // labels of variants
  Measure measure = Measure::kLatency;
  double share = 1;  // of the trials
  std::string task;  // only this one; "": all
  // The published number as a ratio of the method to the baseline; 0: it is of something else.
  double published_ratio = 0;
  bool best_case = false;  // it is that of the best task: "up to"
};

struct Claim {
  std::string name;                              // of the preset
  std::string source;                            // whose claim it is
  std::string about;                             // sentences: what is compared
  ClaimDevice device = ClaimDevice::kSimulated;  // the cheap form
  bool on_machine = false;                       // whether kMachine is another form
  std::vector<ClaimVariant> variants;
  std::vector<std::string>
      tasks;          // operators with shapes; kSample: none; kNetworks: objectives that are judged
  std::string donor;  // the operator whose results `transfers` means
  std::vector<std::string> networks;  // kNetworks: families of the tasks
  std::vector<Contrast> contrasts;
  int trials = 256;
};
const std::vector<Claim>& Claims();

// A search, from its first to its last trial.
struct ClaimRun {
  std::string claim;
  std::string device;  // ClaimDeviceName, with the datasets or the target
  std::string variant, task;
  int seed = 0, trials = 0;
  bool small = false;              // of ClaimOptions; says nothing about a claim
  std::vector<double> latency_ns;  // per trial; 0: failed
  std::vector<double> seconds;     // since the begin, after each trial
  double device_seconds = 0;       // of building and measuring
};

struct ClaimOptions {
  bool on_machine = false;
  bool small = false;  // few trials and small populations, to try the presets
  int seeds = 0;       // 0: 5, or 2 if small
  int trials = 0;      // 0: those of the claim
  std::string sample;  // the dataset of kSample and kNetworks
  std::string other;   // of another machine, for kSample
  // kSample: the held-out tasks of this dataset are judged instead of those of the sample; their
  // device begins with kPoolsDevice.
  std::string pools;
  std::string out;  // folder of the lines, and of the runs of kMachine
  std::string program_folder;
};

// Runs what is missing of a claim and appends a line to OUT/NAME.jsonl after each run. A variant
// whose strategy or model is not in this build is left out, with a line on standard error.
// InvalidArgument: the claim has no form on a machine. Others are those of the searches.
absl::Status RunClaim(const Claim& claim, const ClaimOptions& options);

// One search. Deterministic but for the seconds. `trained`: the model of kSample; null: a new one,
// which learns the latencies of 16 candidates at a time.
absl::StatusOr<ClaimRun> RunSearch(const Claim& claim, const ClaimVariant& variant,
                                   const std::string& task, int seed, int trials, int population);
absl::StatusOr<ClaimRun> RunOnSample(const Claim& claim, const ClaimVariant& variant,
                                     const Sample& sample, const JudgedTask& task, int seed,
                                     int trials, const cost_model::CostModel* trained = nullptr);
// The runs of all variants on the tasks of networks, one for each objective that is judged. A
// latency is then the value of the objective (of "speedup", its reciprocal), 0 while a task has
// none. Each task has the trials of a search that has it alone, and the scheduler chooses which
// task is continued. NotFound: the sample has no tasks of a network, or a name is unknown.
absl::StatusOr<std::vector<ClaimRun>> RunOnNetworks(const Claim& claim, const Sample& sample,
                                                    int seed, int trials);
// Whether a variant can run in this build, and if not, why.
absl::Status CheckVariant(const ClaimVariant& variant);

// Reads the lines of all claims in a folder. InvalidArgument: a line is malformed; the message has
// the file and the line.
absl::StatusOr<std::vector<ClaimRun>> ReadClaimRuns(const std::string& folder);

enum class Verdict { kReproduced, kRefuted, kNotSignificant, kNotRun };
// What the runs say about a contrast: the ratio of the method to the baseline (geometric mean over
// tasks; below 1, the method is better), with a 95 % interval from a bootstrap that resamples
// tasks, if there are at least three, and seeds.
struct Finding {
  Interval ratio;
  Verdict verdict = Verdict::kNotRun;
  int tasks = 0, seeds = 0;
  double device_seconds = 0;
  std::string best_task;  // that with the lowest ratio
  Interval best;          // its ratio; the interval is from a bootstrap over seeds
};
Finding Judge(const Contrast& contrast, absl::Span<const ClaimRun> runs);

// Returns a table in Markdown with a line for each contrast, device and number of trials. Lines of
// `page`, an earlier result, are kept unless `runs` have the same contrast, device and trials.
// Small runs are left out.
std::string VerdictText(absl::Span<const ClaimRun> runs, absl::string_view page = "");

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_CLAIMS_H_
