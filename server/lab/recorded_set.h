#ifndef HONE_SERVER_LAB_RECORDED_SET_H_
#define HONE_SERVER_LAB_RECORDED_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/record.h"

namespace hone::lab {

// What one program came to on the device.
struct Measurement {
  record::Outcome outcome = record::Outcome::kOk;
  double latency_ns = 0;  // steady (record::SteadyLatencyNs), median of the rounds; 0 unless ok
  double dispersion = 0;  // of the samples of the round that gave the latency
  double build_ms = 0;    // compile and link, in one builder
  double run_ms = 0;      // from the result before it to its own, on the one runner
  int rounds = 1;         // how often it was measured
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

// A decision vector, and which program it makes: several vectors may make the same.
struct RecordedCandidate {
  int space = 0;
  std::vector<int64_t> decisions;
  int measurement = 0;
  friend bool operator==(const RecordedCandidate&, const RecordedCandidate&) = default;
};

// The design spaces of one workload, every legal candidate of which was measured: what strategies
// and models run on without a device.
struct RecordedSet {
  std::string name;     // "matmul_512"
  std::string machine;  // that measured, for people
  std::string target;   // text form
  int64_t recorded_unix_ms = 0;
  std::vector<std::string> spaces;  // trace files with open decisions, all of one workload
  std::vector<Measurement> measurements;
  std::vector<RecordedCandidate> candidates;  // every legal vector once
  friend bool operator==(const RecordedSet&, const RecordedSet&) = default;
};

// The latency of the fastest program. REQUIRES that CheckRecordedSet accepts the set.
double BestLatencyNs(const RecordedSet& set);

// The set without the design spaces that change a layout, where others are left; its measurements,
// and so the best known, stay those of the whole set.
RecordedSet WithoutLayoutChanges(RecordedSet set);

// InvalidArgument: an index out of range, a vector given twice, an outcome "ok" without a positive
// latency, or none that is ok.
absl::Status CheckRecordedSet(const RecordedSet& set);

// The file form: a line "hone recorded set VERSION", a line with the digest of the rest's content,
// its size in bytes (8, little-endian), and the content compressed by Zstandard.
std::string EncodeRecordedSet(const RecordedSet& set);
// InvalidArgument: not a recorded set, of a newer version, truncated, damaged, or refused by
// CheckRecordedSet; the message says which and what to do.
absl::StatusOr<RecordedSet> DecodeRecordedSet(absl::string_view bytes);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_RECORDED_SET_H_
