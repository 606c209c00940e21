// The interface is the concrete program's.
#undef HONE_RECORDED
#undef hone
#undef int64_t
#include "common/schedule/recorded/recorded_replay.h"

#include "common/schedule/recorded/recorder.h"

// clang-format off: what follows is not.
#include "common/schedule/recorded/names.h"
// clang-format on

#include "common/schedule/recorded/program_numbers.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"

namespace hone::recorded_replay {
namespace {

using Recorded = int64_t;

struct Collect {
  std::vector<int64_t>& numbers;
  void Number(const int64_t& number) { numbers.push_back(number); }
  void Constant(const ir::Index& index) { numbers.push_back(index.constant()); }
};

class TextReplay final : public recorded::RecordedReplay {
 public:
  explicit TextReplay(schedule::TraceFile file)
      : workload_(std::make_shared<const ir::Workload>(std::move(file.workload))),
        trace_(std::move(file.parsed.trace)) {}

#undef int64_t
  recorded::Recording Record(absl::Span<const int64_t> decisions) const override {
    recorded::Recorder recorder;
    std::vector<Recorded> inputs;
    for (size_t i = 0; i < decisions.size(); ++i)
      inputs.push_back(recorder.Input(static_cast<int>(i), decisions[i]));
    const auto program = schedule::Replay(workload_, trace_, inputs);
    std::vector<Recorded> numbers;
    if (program.ok()) {
      Collect collect{numbers};
      ir::NumbersOf numbers_of(*program, collect);
    }
    recorded::Recording recording = recorder.Finish(numbers);
    recording.legal = program.ok();
    return recording;
  }

 private:
  std::shared_ptr<const ir::Workload> workload_;
  schedule::Trace trace_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<recorded::RecordedReplay>> CreateTextReplay(absl::string_view text) {
  HONE_ASSIGN_OR_RETURN(schedule::TraceFile file, schedule::ParseTraceFile(text));
  return std::make_unique<TextReplay>(std::move(file));
}

}  // namespace hone::recorded_replay

#undef hone

namespace hone::recorded {

absl::StatusOr<std::unique_ptr<RecordedReplay>> RecordedReplay::Create(absl::string_view text) {
  return hone_recorded::recorded_replay::CreateTextReplay(text);
}

}  // namespace hone::recorded
