// Jobs of networks over a Unix socket: requests, progress, restarts and cancels.

#include <functional>
#include <set>

#include "client/connection/connection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/service/job_convert.h"
#include "tests/server/service/service_harness.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::HasSubstr;
using Stub = v1::TuningService::Stub;

class NetworkServiceTest : public ::testing::Test, protected ServiceHarness {
 protected:
  void SetUp() override { ASSERT_THAT(Start(), IsOk()); }

  static v1::CreateJobRequest NetworkRequest(int64_t trials, const std::string& request_id = "") {
    v1::CreateJobRequest request = Request(trials, request_id);
    request.clear_workload();
    request.mutable_network()->set_name("net");
    double weight = 1;
    for (const char* workload : {"fake alpha 12", "fake beta 12", "fake gamma 12"}) {
      v1::NetworkTask& task = *request.mutable_network()->add_tasks();
      task.set_workload(workload);
      task.add_weights(weight);
      weight *= 3;
    }
    return request;
  }
  v1::Job Create(const v1::CreateJobRequest& request) {
    v1::Job job;
    const grpc::Status status = Call(*tuning, &Stub::CreateJob, request, &job);
    EXPECT_THAT(status, IsOk()) << status.error_message();
    return job;
  }
  v1::Job Get(const std::string& id) {
    const v1::GetJobRequest request = JobOf(id);
    v1::Job job;
    Call(*tuning, &Stub::GetJob, request, &job);
    return job;
  }
  bool AwaitTrials(const std::string& id, int64_t trials) {
    return Eventually([&] { return Get(id).trials() >= trials; });
  }
  // The numbers of the screened trials of a job, each recorded once.
  std::set<int64_t> Trials(const std::string& id) {
    std::set<int64_t> trials;
    v1::ListRecordsRequest request;
    request.set_job_id(id);
    request.set_page_size(1000);
    v1::ListRecordsResponse page;
    EXPECT_THAT(Call(*tuning, &Stub::ListRecords, request, &page), IsOk());
    for (const v1::Record& record : page.records()) {
      if (record.policy().name() != "screen" || record.trial() == 0) continue;
      EXPECT_TRUE(trials.insert(record.trial()).second) << "trial " << record.trial() << " twice";
    }
    return trials;
  }
};

TEST_F(NetworkServiceTest, TunesANetworkToItsEnd) {
  RemoteWorker worker(channel, "w");
  const v1::Job job = WaitForEnd(Create(NetworkRequest(120)).id());
  ASSERT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  EXPECT_EQ(job.trials(), 120);
  EXPECT_EQ(job.outcomes().at("ok"), 120);
  EXPECT_EQ(job.workload(), "");
  EXPECT_EQ(job.request().network().scheduler(), "expected-gain");
  EXPECT_EQ(job.request().network().objective(), "latency");
  const v1::NetworkProgress& network = job.network();
  EXPECT_EQ(network.name(), "net");
  EXPECT_EQ(network.task_count(), 3);
  EXPECT_NEAR(network.default_latency_ns(), 13000, 0.1);
  ASSERT_EQ(network.tasks_size(), 3);
  double latency = 0;
  int64_t trials = 0;
  for (int i = 0; i < 3; ++i) {
    const v1::NetworkTaskProgress& task = network.tasks(i);
    EXPECT_EQ(task.workload(), NetworkRequest(1).network().tasks(i).workload());
    EXPECT_EQ(task.state(), v1::JOB_STATE_DONE);
    EXPECT_TRUE(task.confirmed());
    EXPECT_GT(task.gflops(), 0);
    EXPECT_GE(task.trials(), 5) << "the first batch";
    EXPECT_EQ(Trials(task.job()).size(), static_cast<size_t>(task.trials()));
    latency += task.weights(0) * task.latency_ns();
    trials += task.trials();
    v1::Best best;
    ASSERT_THAT(Call(*tuning, &Stub::LookupBest, BestOf(task.workload()), &best), IsOk());
    EXPECT_EQ(best.record().result().latency_ns(), task.latency_ns());
  }
  EXPECT_EQ(trials, 120);
  EXPECT_DOUBLE_EQ(network.latency_ns(), latency);
  EXPECT_EQ(network.estimates(network.estimates_size() - 1).latency_ns(), latency);

  v1::ListJobsResponse list;
  ASSERT_THAT(Call(*tuning, &Stub::ListJobs, v1::ListJobsRequest(), &list), IsOk());
  ASSERT_EQ(list.jobs_size(), 1) << "the jobs of its tasks are not listed";
  EXPECT_EQ(list.jobs(0).network().latency_ns(), latency);
  EXPECT_EQ(list.jobs(0).network().tasks_size(), 0);
  EXPECT_TRUE(list.jobs(0).network().confirmed());
}

TEST_F(NetworkServiceTest, ProposalsAreForATask) {
  RemoteWorker worker(channel, "w");
  worker.slow = 1;
  const v1::Job job = Create(NetworkRequest(120));
  ASSERT_TRUE(Eventually([&] { return Get(job.id()).network().tasks_size() == 3; }));
  const std::string task = job.id() + ".1";
  ASSERT_TRUE(Eventually([&] { return Get(task).id() == task; }));
  v1::ProposeRequest request;
  request.set_job(job.id());
  request.set_proposer("a");
  request.add_traces("1,2,3");
  v1::ProposeResponse verdicts;
  const grpc::Status refused = Call(*tuning, &Stub::Propose, request, &verdicts);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("one of its tasks, such as " + job.id() + ".0"));
  v1::ListTrialsRequest list;
  list.set_job(job.id());
  v1::ListTrialsResponse trials;
  EXPECT_THAT(Call(*tuning, &Stub::ListTrials, list, &trials).error_message(),
              HasSubstr("of its tasks, such as " + job.id() + ".0"));
  request.set_job(task);
  // UNAVAILABLE: the task has not begun.
  grpc::Status proposed;
  ASSERT_TRUE(Eventually([&] {
    proposed = Call(*tuning, &Stub::Propose, request, &verdicts);
    return proposed.error_code() != grpc::StatusCode::UNAVAILABLE;
  }));
  ASSERT_THAT(proposed, IsOk()) << proposed.error_message();
  EXPECT_EQ(verdicts.verdicts(0).refusal(), v1::ProposalVerdict::REFUSAL_UNSPECIFIED);
  worker.slow = 0;
  const v1::Job ended = WaitForEnd(job.id());
  ASSERT_EQ(ended.state(), v1::JOB_STATE_DONE) << ended.error();
  EXPECT_EQ(ended.trials(), 120);
  EXPECT_EQ(Get(task).proposers(0).measured(), 1);
  EXPECT_EQ(Get(task).best().record().proposer(), "a");
}

TEST_F(NetworkServiceTest, ARestartLosesNothing) {
  RemoteWorker worker(channel, "w");
  const std::string id = Create(NetworkRequest(600)).id();
  for (const int64_t trials : {40, 200, 400}) {
    ASSERT_TRUE(AwaitTrials(id, trials));
    Stop();
    ASSERT_THAT(Start(), IsOk());
  }
  const v1::Job job = WaitForEnd(id);
  ASSERT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  EXPECT_EQ(job.trials(), 600);
  size_t trials = 0;
  for (const v1::NetworkTaskProgress& task : job.network().tasks()) {
    EXPECT_TRUE(task.confirmed());
    trials += Trials(task.job()).size();
  }
  EXPECT_EQ(trials, 600u);
}

TEST_F(NetworkServiceTest, ACancelledNetworkKeepsItsBests) {
  RemoteWorker worker(channel, "w");
  v1::CreateJobRequest endless = NetworkRequest(0);
  endless.set_max_time_ms(3'600'000);
  const std::string id = Create(endless).id();
  ASSERT_TRUE(AwaitTrials(id, 60));
  worker.slow = 1;  // keeps a fast machine from measuring the whole spaces
  v1::CancelJobRequest cancel;
  cancel.set_id(id);
  cancel.set_confirm_finalists(true);
  v1::Job job;
  ASSERT_THAT(Call(*tuning, &Stub::CancelJob, cancel, &job), IsOk());
  worker.slow = 0;
  job = WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELLED);
  for (const v1::NetworkTaskProgress& task : job.network().tasks()) {
    EXPECT_TRUE(task.confirmed()) << task.DebugString();
  }
  EXPECT_TRUE(job.network().confirmed());
}

TEST_F(NetworkServiceTest, TheClientLibraryWatchesANetwork) {
  RemoteWorker worker(channel, "w");
  HONE_ASSERT_OK_AND_ASSIGN(const auto connection, client::Connection::Open(address.ToText(), {}));
  v1::CreateJobRequest request;
  request.set_target("native");
  request.set_max_trials(90);
  v1::NetworkRequest& asked = *request.mutable_network();
  asked.set_name("net");
  asked.set_objective("speedup");
  asked.set_scheduler("gradient");
  const auto add_task = [&](const char* workload, double a, double b) {
    v1::NetworkTask& task = *asked.add_tasks();
    task.set_workload(workload);
    task.add_weights(a);
    task.add_weights(b);
  };
  add_task("fake alpha 12", 1, 1);
  add_task("fake beta 12", 0, 2);
  for (const double reference_ns : {500, 900}) {
    v1::Network& network = *asked.add_networks();
    network.set_reference_ns(reference_ns);
    network.set_weight(reference_ns / 100);
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto created,
                            connection->CreateJob(request, /*waiting=*/nullptr));
  int64_t trials = 0;
  int changes = 0;
  HONE_ASSERT_OK_AND_ASSIGN(const auto job,
                            connection->WatchJob(created.id(), [&](const v1::Job& now, auto news) {
                              EXPECT_GE(now.trials(), trials);
                              trials = now.trials();
                              changes += news == client::JobNews::kChanged ? 1 : 0;
                              EXPECT_TRUE(now.has_network());
                              return true;
                            }));
  EXPECT_GT(changes, 1);
  ASSERT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  const v1::NetworkProgress& network = job.network();
  ASSERT_EQ(network.tasks_size(), 2);
  EXPECT_THAT(network.tasks(1).weights(), testing::ElementsAre(0, 2));
  EXPECT_EQ(network.tasks(1).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(network.tasks(1).operator_(), "beta");
  EXPECT_DOUBLE_EQ(network.latency_ns(),
                   2 * network.tasks(0).latency_ns() + 2 * network.tasks(1).latency_ns());
  EXPECT_FALSE(network.estimates().empty());
  ASSERT_EQ(job.request().network().networks_size(), 2);
  EXPECT_EQ(job.request().network().networks(0).weight(), 5);
  EXPECT_EQ(job.request().network().networks(1).weight(), 9);
}

TEST_F(NetworkServiceTest, AnUnwatchedNetworkIsCancelledAsOneJob) {
  Stop();
  ServerOptions options;
  options.private_mode = true;
  options.unwatched_limit = absl::Seconds(3);  // also suffices for a busy machine
  ASSERT_THAT(Start(options), IsOk());
  RemoteWorker worker(channel, "w");
  v1::CreateJobRequest endless = NetworkRequest(0);
  endless.set_max_time_ms(3'600'000);
  const std::string id = Create(endless).id();
  {
    grpc::ClientContext context;
    auto reader = tuning->WatchJob(&context, JobOf(id));
    v1::Job state;
    const absl::Time until = absl::Now() + absl::Seconds(5);
    while (absl::Now() < until && reader->Read(&state)) {
    }
    EXPECT_EQ(state.state(), v1::JOB_STATE_RUNNING) << "its tasks need no watcher of their own";
    for (const v1::NetworkTaskProgress& task : state.network().tasks()) {
      EXPECT_EQ(task.state(), v1::JOB_STATE_RUNNING);
    }
    context.TryCancel();
    reader->Finish();
  }
  EXPECT_EQ(WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(NetworkServiceTest, InvalidRequestNamesTheField) {
  struct Case {
    const char* field;
    std::function<void(v1::CreateJobRequest&, v1::NetworkRequest&)> spoil;
  };
  const Case cases[] = {
      {"a job needs a limit", [](auto& r, auto&) { r.set_max_trials(0); }},
      {"workload", [](auto& r, auto&) { r.set_workload("fake op 12"); }},
      {"workload_digest", [](auto& r, auto&) { r.set_workload_digest("abc"); }},
      {"space", [](auto& r, auto&) { r.set_space("1,2,3"); }},
      {"revalidate", [](auto& r, auto&) { r.set_revalidate(1); }},
      {"unpublished", [](auto& r, auto&) { r.set_unpublished(true); }},
      {"network.tasks", [](auto&, auto& n) { n.clear_tasks(); }},
      {"network.tasks[1]: ", [](auto&, auto& n) { n.mutable_tasks(1)->set_workload("x"); }},
      {"task 0 has the same workload",
       [](auto&, auto& n) { n.mutable_tasks(2)->set_workload("fake alpha 12"); }},
      {"network.tasks[1]", [](auto&, auto& n) { n.mutable_tasks(1)->clear_weights(); }},
      {"network.tasks[0]", [](auto&, auto& n) { n.mutable_tasks(0)->set_weights(0, -1); }},
      {"network.tasks[0]", [](auto&, auto& n) { n.mutable_tasks(0)->set_weights(0, 0); }},
      {"2 weights for 1 networks", [](auto&, auto& n) { n.mutable_tasks(0)->add_weights(1); }},
      {"network.objective", [](auto&, auto& n) { n.set_objective("x"); }},
      {"network.scheduler", [](auto&, auto& n) { n.set_scheduler("x"); }},
      {"network.patience", [](auto&, auto& n) { n.set_patience(-1); }},
      {"network.early_stop", [](auto&, auto& n) { n.set_early_stop(-1); }},
      {"network.early_stop", [](auto&, auto& n) { n.set_objective("early-stop"); }},
      {"network.networks", [](auto&, auto& n) { n.set_objective("speedup"); }},
      {"latency_limit_ns",
       [](auto&, auto& n) {
         n.set_objective("latency-limits");
         n.add_networks();
       }},
      {"network.networks", [](auto&, auto& n) { n.add_networks()->set_reference_ns(-1); }},
      {"network.networks.weight",
       [](auto&, auto& n) {
         n.set_objective("speedup");
         n.add_networks()->set_reference_ns(1);
         n.mutable_networks(0)->set_weight(-1);
       }},
      {"network.networks.weight", [](auto&, auto& n) { n.add_networks()->set_weight(2); }},
  };
  RemoteWorker worker(channel, "w");
  for (const Case& bad : cases) {
    v1::CreateJobRequest request = NetworkRequest(10);
    bad.spoil(request, *request.mutable_network());
    v1::Job job;
    const grpc::Status status = Call(*tuning, &Stub::CreateJob, request, &job);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << bad.field;
    EXPECT_THAT(status.error_message(), HasSubstr(FieldWords(bad.field)));
  }
}

}  // namespace
}  // namespace hone::service
