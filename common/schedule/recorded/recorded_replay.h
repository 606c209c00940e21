#ifndef HONE_COMMON_SCHEDULE_RECORDED_RECORDED_REPLAY_H_
#define HONE_COMMON_SCHEDULE_RECORDED_RECORDED_REPLAY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/schedule/recorded/recording.h"

namespace hone::recorded {

// Replays of one trace that write down what they do with the numbers of the decision vector.
// Immutable; each thread may record one at a time.
class RecordedReplay {
 public:
  // From the text of a trace file, decisions open. InvalidArgument: as of schedule::ParseTraceFile.
  static absl::StatusOr<std::unique_ptr<RecordedReplay>> Create(absl::string_view text);
  virtual ~RecordedReplay() = default;

  // What schedule::Replay of these decisions does; one that is refused is recorded as not legal.
  // REQUIRES as many as the trace takes.
  virtual Recording Record(absl::Span<const int64_t> decisions) const = 0;
};

}  // namespace hone::recorded

#endif  // HONE_COMMON_SCHEDULE_RECORDED_RECORDED_REPLAY_H_
