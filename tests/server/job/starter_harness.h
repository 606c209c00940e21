#ifndef HONE_TESTS_SERVER_JOB_STARTER_HARNESS_H_
#define HONE_TESTS_SERVER_JOB_STARTER_HARNESS_H_

#include "gtest/gtest.h"
#include "server/job/job_book.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/fakes/manual_executor.h"
#include "tests/fakes/manual_store.h"

namespace hone::job {

// The book and the starter of a server, for tests of the parts that use them. The jobs are
// suspended before their messages run.
class StarterHarness : public ::testing::Test {
 protected:
  ~StarterHarness() override {
    for (const JobBook::JobPtr& job : book_.Suspend()) job->Suspend();
    executor_.RunAll();
  }

  FakeClock clock_;
  store::ManualStore store_;
  ManualExecutor executor_;
  fleet::ArtifactCache artifacts_;
  fleet::Fleet fleet_{&clock_, &artifacts_};
  FakeTaskEnvironment environment_;
  const JobServices services_{.clock = &clock_,
                              .store = &store_,
                              .fleet = &fleet_,
                              .environment = &environment_,
                              .executor = &executor_,
                              .server = "host/2"};
  const JobOptions options_;
  JobBook book_{/*max_jobs=*/8, /*max_jobs_per_owner=*/8};
  JobStarter starter_{services_, options_, &book_};
};

}  // namespace hone::job

#endif  // HONE_TESTS_SERVER_JOB_STARTER_HARNESS_H_
