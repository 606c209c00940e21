#ifndef HONE_COMMON_RECORD_RECORD_H_
#define HONE_COMMON_RECORD_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Plain structs for measurements and records. They mirror proto/hone/v1/types.proto, which explains
// each field; common/record/proto_convert.h converts between the two. Domain code uses these
// structs and never the generated headers.
namespace hone::record {

enum class Outcome {
  kOk = 1,
  kInvalid = 2,
  kCompileError = 3,
  kCompileTimeout = 4,
  kRunTimeout = 5,
  kCrash = 6,
  kWrongOutput = 7,
  kOutOfMemory = 8,
  kDeviceLost = 9,
};
// "ok", "invalid", "compile_error", …
absl::string_view OutcomeName(Outcome outcome);
// InvalidArgument: unknown name.
absl::StatusOr<Outcome> OutcomeFromName(absl::string_view name);
// Every outcome, in order.
const std::vector<Outcome>& AllOutcomes();

struct Policy {
  std::string name = "screen";  // or "confirm"
  std::string cache = "warm";   // or "flushed"
  int threads = 0;              // 0: all cores
  int repeats = 0;              // a latency is the median of at least so many blocks; 0: unknown
  double confidence = 0;        // of the intervals that compare finalists; 0: unknown
  friend bool operator==(const Policy&, const Policy&) = default;
  // Returns "confirm/warm/2", the policy's part of the key of bests. The number of repeats is not
  // part of the key, because it affects only the accuracy of the latency.
  std::string Key() const;
};

// The compact form of a trace: a design space and the values of its decisions.
struct Candidate {
  std::string space_digest;
  std::vector<int64_t> decisions;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

struct BuildFacts {
  double compile_ms = 0;
  double link_ms = 0;
  int64_t code_bytes = 0;
  int64_t spills = 0;
  double loads_per_fma = 0;
  int64_t workspace_bytes = 0;
  std::string program_digest;
};

// The state of the machine while a candidate was timed. 0 means unknown.
struct MachineState {
  double frequency_mhz = 0;
  double temperature_c = 0;
  double load = 0;
  double steal = 0;
  int remeasured = 0;  // number of blocks that were disturbed and measured again
  friend bool operator==(const MachineState&, const MachineState&) = default;
};

struct MeasureResult {
  Outcome outcome = Outcome::kOk;
  std::string detail;
  std::vector<double> samples_ns;
  double latency_ns = 0;
  double dispersion = 0;
  double reference_drift = 0;
  bool stopped_early = false;
  BuildFacts facts;
  std::string artifact_digest;
  double max_error = 0;
  MachineState machine;
  int processes = 0;  // how many processes this is the median of; 0: the result of one process
  // What it was measured on: kSeededInputs or the digest of a user's data (given_inputs.h).
  std::string inputs;
  std::string counters;  // what one run counted (counters.h); "" if nothing was counted
};

// Returns the latency scaled to the machine's speed at the time when its worker registered. Results
// of different times must be compared by this latency, because shared machines change their speed
// every minute.
double SteadyLatencyNs(const MeasureResult& result);

struct Environment {
  std::string cpu;
  std::string isa;
  int cores = 0;
  std::string os;
  std::string governor;
  std::string compiler;
  int codegen_version = 0;
  std::string hone_version;
  friend bool operator==(const Environment&, const Environment&) = default;
};

inline constexpr int64_t kNoTrial = -1;

struct Record {
  int64_t id = 0;  // set by the store
  std::string workload_digest;
  std::string op;  // the workload's name
  std::string target;
  double tolerance = 0;
  Policy policy;
  Candidate candidate;
  MeasureResult result;
  Environment environment;
  std::string job_id;
  int64_t trial = 0;  // of the job; kNoTrial: the job measured the candidate of another job again
  int64_t created_unix_ms = 0;
  bool is_default = false;
  std::string proposer;  // the program that proposed the candidate; "": the job's own search
  bool quarantined = false;
  std::string quarantine_reason;  // "" unless quarantined
};

// Requests of the agent to a builder or runner process (proto/hone/v1/process.proto).
struct BuildRequest {
  std::string workload;
  std::string space;
  std::vector<int64_t> decisions;
  std::string target;
  std::string artifact_dir;
  bool reference = false;
};
struct BuildResponse {
  Outcome outcome = Outcome::kOk;
  std::string detail;
  std::string artifact_digest;
  BuildFacts facts;
};
struct RunRequest {
  std::string workload;
  std::string workload_digest;
  std::string artifact_path;
  std::string reference_path;
  std::string reference_data;
  Policy policy;
  double tolerance = 0;
  double best_latency_ns = 0;  // steady (SteadyLatencyNs); 0: none yet
  double peak_gflops = 0;      // of all cores, measured when the worker registered; 0: unknown
  uint64_t seed = 0;
  int64_t time_limit_ms = 0;
  std::string inputs_digest;  // of the data to measure on; "": seeded inputs
  std::string inputs_path;
};

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_RECORD_H_
