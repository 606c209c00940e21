#ifndef HONE_SERVER_RESEARCH_LAB_RECORDED_SET_H_
#define HONE_SERVER_RESEARCH_LAB_RECORDED_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/record.h"

namespace hone::lab {

// The result of one program on the device.
struct Measurement {
  record::Outcome outcome = record::Outcome::kOk;
  double latency_ns = 0;  // steady (record::SteadyLatencyNs), median of the rounds; 0 unless ok
  double dispersion = 0;  // of the samples of the round with that latency
  double build_ms = 0;    // compile and link time, in one builder
  double run_ms = 0;      // from the previous result to this one, on one runner
  int rounds = 1;         // how often it was measured
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

// A decision vector and its program; several vectors may make the same program.
struct RecordedCandidate {
  int space = 0;
  std::vector<int64_t> decisions;
  int measurement = 0;
  friend bool operator==(const RecordedCandidate&, const RecordedCandidate&) = default;
};

// The design spaces of one workload with measurements of every legal candidate. Strategies and
// models run on it without a device.
struct RecordedSet {
  std::string name;     // "matmul_512"
  std::string machine;  // description of the measuring machine
  std::string target;   // text form
  int64_t recorded_unix_ms = 0;
  std::vector<std::string> spaces;  // trace files with open decisions, all of one workload
  std::vector<Measurement> measurements;
  std::vector<RecordedCandidate> candidates;  // every legal vector once
  friend bool operator==(const RecordedSet&, const RecordedSet&) = default;
};

// Returns the latency of the fastest program. REQUIRES: CheckRecordedSet accepts the set.
double BestLatencyNs(const RecordedSet& set);

// Returns the first candidate of every program.
std::vector<const RecordedCandidate*> FirstCandidates(const RecordedSet& set);

// Returns the set without the design spaces that change a layout, unless none would be left. The
// measurements, and thus the best known latency, stay those of the whole set.
RecordedSet WithoutLayoutChanges(RecordedSet set);

// InvalidArgument: an index is out of range, a vector occurs twice, an "ok" outcome has no positive
// latency, or no outcome is ok.
absl::Status CheckRecordedSet(const RecordedSet& set);

// Encodes the file: a line "hone recorded set VERSION", a line with the digest of the content, its
// size in bytes (8, little-endian), and the content compressed with Zstandard.
std::string EncodeRecordedSet(const RecordedSet& set);
// InvalidArgument: not a recorded set, of a newer version, truncated, damaged, or refused by
// CheckRecordedSet; the message says which and what to do.
absl::StatusOr<RecordedSet> DecodeRecordedSet(absl::string_view bytes);

inline constexpr absl::string_view kSetSuffix = ".recorded";

// Returns the sorted names of the recorded sets in a folder. NotFound: the folder cannot be read or
// contains no recorded set.
absl::StatusOr<std::vector<std::string>> RecordedSetNames(const std::string& folder);

// Loads a set by name. NotFound: unknown name; the message lists the names. InvalidArgument: as for
// DecodeRecordedSet, with the path.
absl::StatusOr<RecordedSet> LoadRecordedSet(const std::string& folder, const std::string& name);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_RECORDED_SET_H_
