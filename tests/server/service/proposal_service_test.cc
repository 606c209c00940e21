// Schedules that other programs propose, over a Unix socket (docs/proposers.md).

#include <functional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/service/service_harness.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::HasSubstr;
using Stub = v1::TuningService::Stub;

class ProposalServiceTest : public ::testing::Test, protected ServiceHarness {
 protected:
  void SetUp() override { ASSERT_THAT(Start(), IsOk()); }
};

TEST_F(ProposalServiceTest, ProposalsAreMeasuredAndListed) {
  RemoteWorker worker(channel, "w");
  worker.slow = 1;
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, Request(60), &job), IsOk());
  v1::ProposeRequest request;
  request.set_job(job.id());
  request.set_proposer("model-7/beam");
  for (const char* trace : {"1,2,3", "nonsense", "1,2,3"}) request.add_traces(trace);
  v1::ProposeResponse verdicts;
  const grpc::Status proposed = Call(*tuning, &Stub::Propose, request, &verdicts);
  ASSERT_THAT(proposed, IsOk()) << proposed.error_message();
  ASSERT_EQ(verdicts.verdicts_size(), 3);
  EXPECT_GE(verdicts.verdicts(0).trial(), 1);
  EXPECT_EQ(verdicts.verdicts(0).refusal(), v1::ProposalVerdict::REFUSAL_UNSPECIFIED);
  EXPECT_EQ(verdicts.verdicts(1).refusal(), v1::ProposalVerdict::REFUSAL_MALFORMED);
  EXPECT_EQ(verdicts.verdicts(1).trial(), -1);
  EXPECT_EQ(verdicts.verdicts(2).refusal(), v1::ProposalVerdict::REFUSAL_KNOWN);
  worker.slow = 0;
  job = WaitForEnd(job.id());
  ASSERT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  EXPECT_EQ(job.best().record().proposer(), "model-7/beam");
  ASSERT_EQ(job.proposers_size(), 1);
  EXPECT_EQ(job.proposers(0).name(), "model-7/beam");
  EXPECT_EQ(job.proposers(0).accepted(), 1);
  EXPECT_EQ(job.proposers(0).measured(), 1);
  EXPECT_GT(job.proposers(0).latency_ns(), 0);

  v1::ListTrialsRequest list;
  list.set_job(job.id());
  list.set_proposed(true);
  list.set_with_traces(true);
  list.set_page_size(1);
  v1::ListTrialsResponse page;
  std::set<std::string> purposes;
  do {
    ASSERT_THAT(Call(*tuning, &Stub::ListTrials, list, &page), IsOk());
    EXPECT_EQ(page.state(), v1::JOB_STATE_DONE);
    EXPECT_EQ(page.best().record().id(), job.best().record().id());
    list.set_after(page.next());
    for (const v1::MeasuredTrial& trial : page.trials()) {
      purposes.insert(trial.purpose());
      EXPECT_EQ(trial.trial(), verdicts.verdicts(0).trial());
      EXPECT_EQ(trial.proposer(), "model-7/beam");
      EXPECT_EQ(trial.trace(), "space of op searched [1, 2, 3]");
      EXPECT_EQ(trial.outcome(), v1::OUTCOME_OK);
      EXPECT_GT(trial.latency_ns(), 0);
      EXPECT_TRUE(trial.is_best());
    }
  } while (page.more());
  EXPECT_EQ(purposes, (std::set<std::string>{"confirm", "screen"}));
  list.set_after(0);
  list.set_page_size(1000);
  list.set_proposed(false);
  ASSERT_THAT(Call(*tuning, &Stub::ListTrials, list, &page), IsOk());
  EXPECT_GT(page.trials_size(), 60) << "the search's own, too";
  list.set_proposer("nobody");
  ASSERT_THAT(Call(*tuning, &Stub::ListTrials, list, &page), IsOk());
  EXPECT_EQ(page.trials_size(), 0);

  const grpc::Status late = Call(*tuning, &Stub::Propose, request, &verdicts);
  EXPECT_EQ(late.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(late.error_message(), HasSubstr("propose for another job"));
}

TEST_F(ProposalServiceTest, WrongProposalsNameTheField) {
  v1::ProposeRequest valid;
  valid.set_job("4711");
  valid.set_proposer("a");
  valid.add_traces("1,2,3");
  v1::ProposeResponse verdicts;
  EXPECT_EQ(Call(*tuning, &Stub::Propose, valid, &verdicts).error_code(),
            grpc::StatusCode::NOT_FOUND);
  struct Case {
    const char* field;
    std::function<void(v1::ProposeRequest&)> spoil;
  };
  const Case cases[] = {
      {"job", [](auto& r) { r.clear_job(); }},
      {"proposer: missing", [](auto& r) { r.clear_proposer(); }},
      {"proposer: longer", [](auto& r) { r.set_proposer(std::string(65, 'x')); }},
      {"proposer: it may only", [](auto& r) { r.set_proposer("<b>"); }},
      {"traces: missing", [](auto& r) { r.clear_traces(); }},
      {"traces: more than 64",
       [](auto& r) {
         for (int i = 0; i < 64; ++i) r.add_traces("1,2,3");
       }},
      {"traces 2", [](auto& r) { r.add_traces(std::string((256 << 10) + 1, '1')); }},
  };
  for (const Case& c : cases) {
    v1::ProposeRequest request = valid;
    c.spoil(request);
    const grpc::Status status = Call(*tuning, &Stub::Propose, request, &verdicts);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << c.field;
    EXPECT_THAT(status.error_message(), HasSubstr(c.field));
  }
  v1::ListTrialsRequest list;
  v1::ListTrialsResponse page;
  EXPECT_EQ(Call(*tuning, &Stub::ListTrials, list, &page).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  list.set_job("4711");
  EXPECT_EQ(Call(*tuning, &Stub::ListTrials, list, &page).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(ProposalServiceTest, AnExternalJobNeedsATime) {
  v1::CreateJobRequest request = Request(4);
  request.set_strategy("external");
  EXPECT_THAT(Create(request).error_message(), HasSubstr("until its time is over"));
  request.mutable_network()->add_tasks()->set_workload("fake op 12");
  EXPECT_THAT(Create(request).error_message(), HasSubstr("not for networks"));
  request.clear_network();
  request.set_max_time_ms(600000);
  RemoteWorker worker(channel, "w");
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, request, &job), IsOk());
  v1::ProposeRequest propose;
  propose.set_job(job.id());
  propose.set_proposer("a");
  for (const char* trace : {"1,2,3", "4,4,4", "5,5,5", "6,6,6"}) propose.add_traces(trace);
  v1::ProposeResponse verdicts;
  ASSERT_THAT(Call(*tuning, &Stub::Propose, propose, &verdicts), IsOk());
  job = WaitForEnd(job.id());
  EXPECT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  EXPECT_EQ(job.trials(), 4);
  EXPECT_EQ(job.best().record().proposer(), "a");
}

// A page ends before it is too long for a message.
TEST_F(ProposalServiceTest, LongTracesAreListedInShortPages) {
  RemoteWorker worker(channel, "w");
  v1::CreateJobRequest create = Request(100);
  create.set_strategy("external");
  create.set_max_time_ms(600000);
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CreateJob, create, &job), IsOk());
  for (int call = 0; call < 2; ++call) {
    v1::ProposeRequest propose;
    propose.set_job(job.id());
    propose.set_proposer(absl::StrCat("program-", call));
    for (int i = 0; i < 50; ++i) {
      propose.add_traces(absl::StrCat("foreign ", std::string((250 << 10) + call, ' '), i / 12, ",",
                                      i % 12, ",", call));
    }
    v1::ProposeResponse verdicts;
    const grpc::Status status = Call(*tuning, &Stub::Propose, propose, &verdicts);
    ASSERT_THAT(status, IsOk()) << status.error_message();
    for (const v1::ProposalVerdict& verdict : verdicts.verdicts()) EXPECT_EQ(verdict.why(), "");
  }
  ASSERT_EQ(WaitForEnd(job.id()).state(), v1::JOB_STATE_DONE);
  v1::ListTrialsRequest list;
  list.set_job(job.id());
  list.set_proposed(true);
  list.set_with_traces(true);
  list.set_page_size(1000);
  v1::ListTrialsResponse page;
  std::set<int64_t> records, trials;
  int pages = 0;
  do {
    const grpc::Status status = Call(*tuning, &Stub::ListTrials, list, &page);
    ASSERT_THAT(status, IsOk()) << status.error_message();
    ++pages;
    list.set_after(page.next());
    for (const v1::MeasuredTrial& trial : page.trials()) {
      EXPECT_TRUE(records.insert(trial.record()).second);
      trials.insert(trial.trial());
      EXPECT_GT(trial.trace().size(), size_t{250} << 10);
    }
  } while (page.more());
  EXPECT_EQ(trials.size(), 100u);
  EXPECT_GT(pages, 5);
}

}  // namespace
}  // namespace hone::service
