#ifndef HONE_SERVER_TUNER_COST_MODEL_DRAFT_WEIGHTS_H_
#define HONE_SERVER_TUNER_COST_MODEL_DRAFT_WEIGHTS_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/tuner/cost_model/byte_io.h"
#include "server/tuner/cost_model/cost_model.h"

namespace hone::cost_model {

// The columns of feature set "draft", by position. A test compares them with the names.
enum DraftPart {
  kComputePart,
  kMathPart,
  kLatencyPart,
  kSpillPart,
  kLoadPart,
  kStorePart,
  kBodyPart,
  kMovePart,
  kWaitPart,
  kL2Part,
  kPagePart,
  kL3Part,
  kL3JumpPart,
  kContendedPart,
  kMemoryPart,
  kMemorySharedPart,
  kMemoryJumpPart,
  kForkPart,
  kDraftColumns,
  kOverlapWeight = kDraftColumns,  // how much of the shorter parts the longest one does not hide
  kDraftWeights
};
absl::string_view DraftPartName(int part);

// Factors by which the parts of the draft's estimate are multiplied; all 1: the estimate of
// feature::EstimateCost.
struct DraftWeights {
  // A larger factor would mean that a machine is unlike every machine.
  static constexpr double kMost = 16;

  std::array<double, kDraftWeights> factors;

  DraftWeights() { factors.fill(1); }
  // The cycles of one statement; `forks` are not included.
  double Cycles(absl::Span<const float> row) const;
  // The cycles of a program, the sum of its rows and forks; at least 1.
  double Cycles(const FeatureMatrix& features, int candidate) const;

  // Minimizes Huber's loss of log(cycles · throughput), less the mean of each task, where fast
  // candidates weigh more and every task the same, plus a pull towards factors of 1. Coordinate
  // descent from steps of a factor of 2 to steps of 4 %. Takes about a second for 20,000
  // candidates.
  static DraftWeights Fit(const FeatureMatrix& features, const Labels& labels);

  void Serialize(ByteWriter& writer) const;
  // InvalidArgument: truncated, or a factor is not in [1 / kMost, kMost].
  absl::Status Parse(ByteReader& reader);
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_DRAFT_WEIGHTS_H_
