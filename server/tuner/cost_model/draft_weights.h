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
  kCpuEnd,
  kGpuArithmeticPart = kCpuEnd,
  kGpuIssuePart,
  kGpuSpillPart,
  kGpuSharedPart,
  kGpuConflictPart,
  kGpuL1Part,
  kGpuL2Part,
  kGpuLoadWaitPart,
  kGpuSumWaitPart,
  kGpuBarrierPart,
  kGpuMemoryPart,
  kGpuLaunchPart,
  kGpuEstimate,  // without a factor, as the next ones
  kGpuWaves,
  kGpuResident,
  kGpuLast,
  kGpuEnd,
  kDraftColumns = kGpuEnd,
  // How much of the shorter parts the longest one does not hide.
  kOverlapWeight = kDraftColumns,
  kGpuOverlapWeight,
  kGpuUnhiddenWeight,  // how much of the waits the other blocks of a unit do not hide
  kDraftWeights
};
absl::string_view DraftPartName(int part);

// What the parts of a kind of target are. The rows of one kind have zeros in the columns of the
// others.
struct DraftKind {
  absl::string_view name;            // "CPU"
  int begin, end;                    // its columns
  absl::Span<const int> weights;     // the factors of its parts
  absl::Span<const int> not_cycles;  // its columns that are no part of the cycles
};
// Returns the kind of a candidate, whose rows end with the columns of "draft".
const DraftKind& DraftKindOf(const FeatureMatrix& features, int candidate);
// InvalidArgument: a candidate is of another kind; the message says which.
absl::Status CheckDraftKind(const FeatureMatrix& features, const DraftKind& kind);

// Factors by which the parts of the draft's estimate are multiplied; all 1: the estimate of
// feature::EstimateCost, or of feature::EstimateGpuCost bit by bit.
struct DraftWeights {
  // A larger factor would mean that a machine is unlike every machine.
  static constexpr double kMost = 16;

  const DraftKind* kind;  // whose factors were fitted
  std::array<double, kDraftWeights> factors;

  DraftWeights();
  // The cycles of one statement; `forks` are not included. The estimate of a GPU's launch changes
  // as the sum of its parts does.
  double Cycles(absl::Span<const float> row) const;
  // The cycles of a program, the sum of its rows and forks; at least 1. The rows end with the
  // columns of "draft".
  double Cycles(const FeatureMatrix& features, int candidate) const;

  // Minimizes Huber's loss of log(cycles · throughput), less the mean of each task, where fast
  // candidates weigh more and every task the same, plus a pull towards factors of 1. Coordinate
  // descent from steps of a factor of 2 to steps of 4 %. Takes about a second for 20,000
  // candidates. REQUIRES: at least one candidate, and all are of one kind.
  static DraftWeights Fit(const FeatureMatrix& features, const Labels& labels);

  void Serialize(ByteWriter& writer) const;
  // InvalidArgument: truncated, of an unknown kind, or with another number of factors than it, or a
  // factor is not in [1 / kMost, kMost].
  absl::Status Parse(ByteReader& reader);
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_DRAFT_WEIGHTS_H_
