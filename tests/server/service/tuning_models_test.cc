// Cost models over a Unix socket. None of the calls needs a worker.

#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hone/v1/admin.grpc.pb.h"
#include "server/service/job_convert.h"
#include "server/store/store.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/server/service/service_harness.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::HasSubstr;
using Stub = v1::TuningService::Stub;

class TuningModelsTest : public ::testing::Test, protected ServiceHarness {
 protected:
  void SetUp() override { ASSERT_THAT(Start(), IsOk()); }
  // Runs a job with a worker that is gone afterwards.
  void Tune() {
    RemoteWorker worker(channel, "w");
    v1::Job job;
    ASSERT_THAT(Call(*tuning, &Stub::CreateJob, Request(80), &job), IsOk());
    ASSERT_EQ(WaitForEnd(job.id()).state(), v1::JOB_STATE_DONE);
  }
  // Calls a method of which the server does one at a time: after enough results, it learns in the
  // background.
  template <typename Request, typename Response>
  grpc::Status CallWhenFree(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                         Response*),
                            const std::type_identity_t<Request>& request, Response* response) {
    const absl::Time limit = absl::Now() + absl::Minutes(1);
    while (true) {
      const grpc::Status status = Call(*tuning, method, request, response);
      if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED || absl::Now() > limit)
        return status;
      absl::SleepFor(absl::Milliseconds(10));
    }
  }
  grpc::Status Download(int64_t id, std::string* file) {
    v1::ExportModelRequest request;
    request.set_id(id);
    grpc::ClientContext context;
    auto reader = tuning->ExportModel(&context, request);
    v1::ArtifactChunk chunk;
    while (reader->Read(&chunk)) file->append(chunk.data());
    return reader->Finish();
  }
};

TEST_F(TuningModelsTest, ListsKindsAndThoseMissingInTheBuild) {
  v1::ListModelsResponse list;
  ASSERT_THAT(Call(*tuning, &Stub::ListModels, {}, &list), IsOk());
  ASSERT_EQ(list.kinds_size(), 2);
  EXPECT_EQ(list.kinds(0).name(), "nearest");
  EXPECT_EQ(list.kinds(0).missing(), "");
  EXPECT_EQ(list.kinds(1).name(), "oracle");
  EXPECT_EQ(list.kinds(1).missing(), "it needs a temple");
  EXPECT_EQ(list.models_size(), 0);

  // A job that asks for the missing kind gets the same message.
  v1::CreateJobRequest request = Request(10);
  request.set_cost_model("oracle");
  v1::Job job;
  const grpc::Status status = Call(*tuning, &Stub::CreateJob, request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("cost model: oracle: it needs a temple"));
}

TEST_F(TuningModelsTest, TrainsAndEvaluatesFromTheRecords) {
  Tune();
  v1::StoredModel model;
  grpc::Status status = CallWhenFree(&Stub::TrainModel, {}, &model);
  ASSERT_THAT(status, IsOk()) << status.error_message();
  EXPECT_EQ(model.name(), "nearest");
  EXPECT_EQ(model.feature_set(), "decisions");
  EXPECT_EQ(model.target(), "t");
  EXPECT_EQ(model.workloads(), 1);
  EXPECT_EQ(model.records(), 80);  // the default schedule has no features
  EXPECT_THAT(model.metrics(), HasSubstr("pairwise"));

  v1::ListModelsResponse list;
  ASSERT_THAT(Call(*tuning, &Stub::ListModels, {}, &list), IsOk());
  ASSERT_EQ(list.models_size(), 1);
  EXPECT_EQ(list.models(0).id(), model.id());
  EXPECT_EQ(list.models(0).size_bytes(), model.size_bytes());

  v1::EvaluateModelsRequest request;
  request.set_held_out_trials(0.5);
  v1::EvaluateModelsResponse evaluation;
  status = CallWhenFree(&Stub::EvaluateModels, request, &evaluation);
  ASSERT_THAT(status, IsOk()) << status.error_message();
  ASSERT_EQ(evaluation.scores_size(), 1);
  EXPECT_EQ(evaluation.scores(0).model(), "nearest");
  EXPECT_EQ(evaluation.scores(0).held_out(), "trials");
  EXPECT_GT(evaluation.scores(0).pairwise(), 0.5);
  EXPECT_TRUE(std::isnan(evaluation.scores(0).coverage1()));

  // Models survive a restart of the server.
  Stop();
  ASSERT_THAT(Start(), IsOk());
  ASSERT_THAT(Call(*tuning, &Stub::ListModels, {}, &list), IsOk());
  EXPECT_EQ(list.models_size(), 1);
}

TEST_F(TuningModelsTest, ErrorsNameTheCause) {
  v1::EvaluateModelsRequest request;
  v1::EvaluateModelsResponse evaluation;
  const auto expect = [&](grpc::StatusCode code, const std::string& message) {
    const grpc::Status status = CallWhenFree(&Stub::EvaluateModels, request, &evaluation);
    EXPECT_EQ(status.error_code(), code);
    EXPECT_THAT(status.error_message(), HasSubstr(FieldWords(message)));
    request.Clear();
  };
  expect(grpc::StatusCode::NOT_FOUND, "hone tune makes some");
  request.add_models()->set_name("oracle");
  expect(grpc::StatusCode::FAILED_PRECONDITION, "temple");
  request.add_models()->set_name("crystal ball");
  expect(grpc::StatusCode::INVALID_ARGUMENT, "nearest");
  request.set_held_out_trials(std::nan(""));
  expect(grpc::StatusCode::INVALID_ARGUMENT, "held_out_trials");
  for (const int64_t records : {int64_t{-1}, int64_t{200'001}}) {
    request.set_max_records(records);
    expect(grpc::StatusCode::INVALID_ARGUMENT, "max_records");
  }
  request.add_models()->set_stored(4711);
  expect(grpc::StatusCode::NOT_FOUND, "no model with id 4711");
  request.add_models()->set_stored(1);
  request.mutable_models(0)->set_name("nearest");
  expect(grpc::StatusCode::INVALID_ARGUMENT, "stored");
  request.set_k(-1);
  expect(grpc::StatusCode::INVALID_ARGUMENT, "k: negative");
  request.add_held_out(std::string(300, 'x'));
  expect(grpc::StatusCode::INVALID_ARGUMENT, "held_out");
  for (int i = 0; i < 65; ++i) request.add_models()->set_name("nearest");
  expect(grpc::StatusCode::INVALID_ARGUMENT, "more than 64");

  v1::TrainModelRequest train;
  v1::StoredModel model;
  EXPECT_EQ(CallWhenFree(&Stub::TrainModel, train, &model).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

// Sends a file as `hone models import` does.
grpc::Status ImportFile(v1::AdminService::Stub& admin, const std::string& file,
                        v1::StoredModel* model) {
  grpc::ClientContext context;
  auto writer = admin.ImportModel(&context, model);
  v1::ArtifactChunk chunk;
  chunk.set_digest(Sha256Of(file));
  chunk.set_total_bytes(static_cast<int64_t>(file.size()));
  chunk.set_data(file);
  writer->Write(chunk);
  writer->WritesDone();
  return writer->Finish();
}

TEST_F(TuningModelsTest, AModelIsExportedAndImported) {
  Tune();
  v1::StoredModel trained;
  ASSERT_THAT(CallWhenFree(&Stub::TrainModel, {}, &trained), IsOk());
  EXPECT_TRUE(trained.in_use());
  std::string file;
  ASSERT_THAT(Download(trained.id(), &file), IsOk());
  EXPECT_EQ(Download(4711, &file).error_code(), grpc::StatusCode::NOT_FOUND);

  const auto admin = v1::AdminService::NewStub(channel);
  v1::StoredModel model;
  const grpc::Status refused = ImportFile(*admin, file.substr(0, file.size() / 2), &model);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("truncated"));
  v1::ListModelsResponse list;
  ASSERT_THAT(Call(*tuning, &Stub::ListModels, {}, &list), IsOk());
  EXPECT_EQ(list.models_size(), 1) << "nothing is stored";

  const grpc::Status status = ImportFile(*admin, file, &model);
  ASSERT_THAT(status, IsOk()) << status.error_message();
  EXPECT_EQ(model.name(), "nearest");
  EXPECT_EQ(model.records(), trained.records());
  EXPECT_THAT(model.origin(), HasSubstr("(store "));
  EXPECT_FALSE(model.in_use()) << "the server's own is as new";
  list.Clear();
  ASSERT_THAT(Call(*tuning, &Stub::ListModels, {}, &list), IsOk());
  EXPECT_EQ(list.models_size(), 2);

  v1::EvaluateModelsRequest request;
  request.add_models()->set_stored(model.id());
  v1::EvaluateModelsResponse evaluation;
  ASSERT_THAT(CallWhenFree(&Stub::EvaluateModels, request, &evaluation), IsOk());
  ASSERT_EQ(evaluation.scores_size(), 1);
  EXPECT_EQ(evaluation.scores(0).stored(), model.id());
  EXPECT_EQ(evaluation.scores(0).held_out(), "stored");
}

// A training may occupy the server's threads for minutes; a stream that waits for one of them
// receives nothing, but has not stalled.
TEST_F(TuningModelsTest, AnImportWaitsForATraining) {
  Tune();
  v1::StoredModel trained;
  ASSERT_THAT(CallWhenFree(&Stub::TrainModel, {}, &trained), IsOk());
  std::string file;
  ASSERT_THAT(Download(trained.id(), &file), IsOk());
  Stop();

  absl::Notification busy, release;
  auto environment = std::make_unique<job::FakeTaskEnvironment>();
  environment->WatchSteps([&](absl::string_view, absl::string_view) {
    if (!busy.HasBeenNotified()) busy.Notify();
    release.WaitForNotification();
  });
  ServerOptions options;
  options.threads = 1;
  options.uploads.stall_limit = absl::Seconds(1);
  ASSERT_THAT(StartWith(*store::OpenSqliteStore(folder + "/hone.db"), std::move(options),
                        std::move(environment)),
              IsOk());
  std::thread training([&] {
    v1::StoredModel model;
    EXPECT_THAT(CallWhenFree(&Stub::TrainModel, {}, &model), IsOk());
  });
  EXPECT_TRUE(busy.WaitForNotificationWithTimeout(absl::Minutes(1)));
  std::thread later([&] {
    absl::SleepFor(absl::Seconds(3));
    release.Notify();
  });
  v1::StoredModel imported;
  EXPECT_THAT(ImportFile(*v1::AdminService::NewStub(channel), file, &imported), IsOk());
  EXPECT_GT(imported.id(), trained.id());
  later.join();
  training.join();
}

}  // namespace
}  // namespace hone::service
