#ifndef HONE_TESTS_SERVER_JOB_JOB_HARNESS_H_
#define HONE_TESTS_SERVER_JOB_JOB_HARNESS_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/fleet/fleet.h"
#include "server/job/job_manager.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/fakes/manual_executor.h"
#include "tests/fakes/manual_store.h"

namespace hone::job {

// What a device answers that measured this latency, or the FakeLatency of the candidate.
record::MeasureResult Took(double latency_ns);
record::MeasureResult Timed(const fleet::LeaseGrant& lease);
bool IsConfirmation(const fleet::LeaseGrant& lease);

// A worker that measures with FakeLatency. Its artifacts are the decisions as text.
class FakeDevice {
 public:
  explicit FakeDevice(std::string epoch = "1", std::string id = "device")
      : epoch_(std::move(epoch)), id_(std::move(id)) {}

  // Calls once, and finishes up to `finish` of the leases that it holds.
  void Step(fleet::Fleet& fleet, fleet::ArtifactCache& artifacts, int finish = 1000);

  std::function<record::MeasureResult(const fleet::LeaseGrant&)> measure;  // null for FakeLatency
  // The code of a candidate that is built again for comparison; null or "" for the same.
  std::function<std::string(const fleet::LeaseGrant&)> rebuild;
  bool uploads = true;
  bool ignores_given_inputs = false;
  std::string target = "target text", target_key = "t";
  std::vector<fleet::LeaseGrant> seen;            // every lease that it has started, but these:
  std::vector<fleet::LeaseGrant> rebuilt;         // only for the digest
  std::set<std::string> acknowledged;             // durable leases
  std::map<std::string, fleet::LeaseGrant> held;  // by lease id

 private:
  std::string epoch_;
  std::string id_;
  std::map<std::string, std::string> artifacts_;
  std::map<std::string, record::MeasureResult> finished_;
  std::vector<std::string> keep_;
};

// The parts of a server around a store that outlives them. Restart makes a new server on the same
// store.
class JobHarness {
 public:
  explicit JobHarness(JobOptions options = DefaultOptions(),
                      fleet::FleetOptions fleet_options = {});
  // Drops uncommitted writes first, because their callbacks use the fleet.
  ~JobHarness() { store.Crash(); }
  static JobOptions DefaultOptions();

  static JobSpec Spec(int64_t trials, const std::string& request = "r");
  // Creates the job and returns its id.
  std::string Create(JobSpec spec);
  // Creates the job in a store that holds its writes (ManualStore::Hold), and takes `steps` steps
  // after its confirmation has begun. Commits before each step. Returns the job's id.
  std::string CreateAndConfirm(JobSpec spec, int steps);
  // One round: messages, the device, and a tick of the clock.
  void Step(int finish = 1000);
  // Steps until the job has ended, at most `limit` times.
  std::shared_ptr<const JobSnapshot> RunToEnd(const std::string& id, int limit = 500);
  std::shared_ptr<const JobSnapshot> Get(const std::string& id) { return *jobs->Get(id); }
  void Restart();

  FakeClock clock;  // for deadlines
  FakeClock wall;   // wall clock
  store::ManualStore store;
  FakeTaskEnvironment environment;
  JobOptions options;
  fleet::FleetOptions fleet_options;
  std::unique_ptr<ManualExecutor> executor;
  std::unique_ptr<fleet::ArtifactCache> artifacts;
  std::unique_ptr<fleet::Fleet> fleet;
  std::unique_ptr<JobManager> jobs;
  FakeDevice device;
  std::map<std::string, int> noted;  // results for learning, by target
  bool device_is_gone = false;       // `device` makes no more calls
  std::vector<FakeDevice*> others;   // more devices, stepped after `device`

 private:
  void Build();
};

}  // namespace hone::job

#endif  // HONE_TESTS_SERVER_JOB_JOB_HARNESS_H_
