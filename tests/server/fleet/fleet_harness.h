#ifndef HONE_TESTS_SERVER_FLEET_FLEET_HARNESS_H_
#define HONE_TESTS_SERVER_FLEET_FLEET_HARNESS_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/fleet/fleet.h"
#include "tests/fakes/fake_clock.h"

namespace hone::fleet {

// A worker as the fleet sees it: the report for its next call, and the contents of the replies so
// far.
struct FakeWorker {
  WorkerReport report;
  std::optional<SynchronizeReply> reply;  // to the last call; nullopt until it is answered
  std::vector<LeaseGrant> started;
  std::vector<std::string> cancelled;
  std::vector<std::string> durable;

  static FakeWorker Both(const std::string& id, int slots);

  // Calls the fleet, and applies the reply when it arrives.
  uint64_t Call(Fleet& fleet, absl::Duration max_wait = absl::ZeroDuration());
  void SetPhase(const std::string& lease_id, LeasePhase phase);
  // Reports this result for the lease in the next call.
  void Finish(std::string lease_id, record::MeasureResult result);
  void GiveSlotBack(const std::string& lease_id);
  // Simulates a restart of the process, after which it holds nothing.
  void Restart(const std::string& epoch);
};

record::MeasureResult Measured(double latency_ns, const std::string& artifact = "");

// The outcome of a submitted item.
struct Answer {
  bool called = false;
  absl::StatusOr<WorkResult> result = absl::UnknownError("not called");
  Acknowledge acknowledge;
};

class Harness {
 public:
  explicit Harness(FleetOptions options = {}) : fleet(&clock, &artifacts, std::move(options)) {}

  WorkItem Item(const std::string& job, int64_t candidate);
  std::shared_ptr<Answer> Submit(WorkItem item);
  void Pass(absl::Duration time) {
    clock.Advance(time);
    fleet.Tick();
  }

  FakeClock clock;
  ArtifactCache artifacts;
  Fleet fleet;
};

}  // namespace hone::fleet

#endif  // HONE_TESTS_SERVER_FLEET_FLEET_HARNESS_H_
