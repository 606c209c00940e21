#ifndef HONE_COMMON_TARGET_CALIBRATION_H_
#define HONE_COMMON_TARGET_CALIBRATION_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hone::target {

// What a worker has measured about its CPU or GPU, in nanoseconds; 0: not measured. Times are those
// of one core while the others are idle, unless a comment says otherwise. The cost estimate of
// server/tuner/feature reads them. Of a GPU, only `fma`, `memory_shared_line` and `launch` are
// measured.
struct Calibration {
  // A multiply-add of the widest vectors, among independent ones. Of a GPU: of 32 floats, on one
  // compute unit while all are busy.
  double fma = 0;
  double fma_latency = 0;  // the same, if each waits for the previous one
  double load = 0;         // loading such a vector from L1, among independent loads
  double store = 0;        // the same for storing
  // Per cache line of a stream of reads from L2, from L3 and from memory.
  double l2_line = 0;
  double l3_line = 0;
  double memory_line = 0;
  // Per 64 bytes from memory, while all cores or compute units read.
  double memory_shared_line = 0;
  double fork = 0;    // entering and leaving a parallel loop with work for every core
  double launch = 0;  // of an empty kernel on a GPU, among launches in a row

  // Removes values that no machine can have, as an emulator or a hypervisor may cause.
  void RemoveImpossible();
  bool empty() const { return *this == Calibration(); }
  // "fma:0.287,fma_latency:1.15,…", with what was measured only.
  std::string ToText() const;
  // InvalidArgument: malformed, an unknown name, or a time that no machine can have; the message
  // names it and its bounds.
  static absl::StatusOr<Calibration> FromText(absl::string_view text);

  friend bool operator==(const Calibration&, const Calibration&) = default;
};

// The fields of a calibration with their physical bounds.
struct CalibrationField {
  absl::string_view name;
  double Calibration::* value;
  double min, max;            // nanoseconds
  absl::string_view meaning;  // for people: "a vector multiply-add"
};
absl::Span<const CalibrationField> CalibrationFields();

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_CALIBRATION_H_
