#ifndef HONE_TESTS_SERVER_JOB_NETWORK_NETWORK_HARNESS_H_
#define HONE_TESTS_SERVER_JOB_NETWORK_NETWORK_HARNESS_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/job/job_harness.h"

namespace hone::job {

// A JobHarness for jobs of networks.
class NetworkHarness : public JobHarness {
 public:
  using JobHarness::JobHarness;

  // Three tasks with weights 1, 5 and 2.
  static JobSpec NetworkOf(int64_t trials, const std::string& request = "n") {
    JobSpec spec = Spec(trials, request);
    spec.workload.clear();
    spec.network = NetworkSpec{
        .name = "net",
        .tasks = {{"fake alpha 12", {1}}, {"fake beta 12", {5}}, {"fake gamma 12", {2}}},
        .objective = "latency",
        .scheduler = "round-robin"};
    return spec;
  }

  // Returns the screened trials of each job, without default schedules. A trial that is recorded
  // twice fails the test.
  std::map<std::string, int64_t> Trials() {
    std::map<std::string, std::set<int64_t>> trials;
    store::RecordQuery query{.page_size = 1000};
    while (true) {
      const std::vector<record::Record> page = *store.Query(query);
      for (const record::Record& record : page) {
        query.after_id = record.id;
        if (record.policy.name != "screen" || record.trial == 0) continue;
        EXPECT_TRUE(trials[record.job_id].insert(record.trial).second)
            << "job " << record.job_id << " recorded trial " << record.trial << " twice";
      }
      if (page.size() < 1000) break;
    }
    std::map<std::string, int64_t> counts;
    for (const auto& [job, numbers] : trials) counts[job] = static_cast<int64_t>(numbers.size());
    return counts;
  }
  void StepUntilTrials(const std::string& id, int64_t trials) {
    for (int i = 0; i < 500 && Get(id)->trials < trials; ++i) Step();
    ASSERT_GE(Get(id)->trials, trials);
  }
  SnapshotOr Resume(const std::string& id, int64_t trials,
                    absl::Duration time = absl::ZeroDuration()) {
    SnapshotOr answer = absl::UnknownError("not called");
    jobs->Resume(id, trials, time, [&](SnapshotOr snapshot) { answer = std::move(snapshot); });
    executor->RunAll();
    return answer;
  }
  int64_t AllTrials() {
    int64_t sum = 0;
    for (const auto& [job, count] : Trials()) sum += count;
    return sum;
  }
};

}  // namespace hone::job

#endif  // HONE_TESTS_SERVER_JOB_NETWORK_NETWORK_HARNESS_H_
