// Export, import, backup and compaction over gRPC, as the `hone` commands use them.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/rpc/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hone/v1/admin.grpc.pb.h"
#include "nlohmann/json.hpp"
#include "server/service/job_convert.h"
#include "tests/server/service/service_harness.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::HasSubstr;
using AdminStub = v1::AdminService::Stub;
using TuningStub = v1::TuningService::Stub;

struct Exported {
  absl::Status status;
  std::string text;
};

struct Imported {
  absl::Status status;
  v1::ImportRecordsResponse counts;
};

Exported Export(ServiceHarness& harness, const v1::ListRecordsRequest& request = {}) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
  auto reader = harness.tuning->ExportRecords(&context, request);
  Exported exported;
  v1::TextChunk chunk;
  while (reader->Read(&chunk)) {
    EXPECT_LE(chunk.data().size(), 256u << 10);
    exported.text += chunk.data();
  }
  exported.status = rpc::FromGrpc(reader->Finish());
  return exported;
}

// Sends `text` in chunks of `piece` bytes.
Imported Import(ServiceHarness& harness, const std::string& text, size_t piece = 1000) {
  const auto admin = v1::AdminService::NewStub(harness.channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
  Imported imported;
  auto writer = admin->ImportRecords(&context, &imported.counts);
  for (size_t at = 0; at < text.size(); at += piece) {
    v1::TextChunk chunk;
    chunk.set_data(text.substr(at, piece));
    if (!writer->Write(chunk)) break;  // the server has already refused the import
  }
  writer->WritesDone();
  imported.status = rpc::FromGrpc(writer->Finish());
  return imported;
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

class AdminStoreTest : public ::testing::Test, protected ServiceHarness {
 protected:
  void SetUp() override {
    ASSERT_THAT(Start(), IsOk());
    ASSERT_THAT(other_.Start(), IsOk());
    admin_ = v1::AdminService::NewStub(channel);
  }
  // Runs a job of `trials` trials to its end.
  v1::Job Tune(int64_t trials, const std::string& workload = "fake op 12") {
    RemoteWorker worker(channel, "w");
    v1::CreateJobRequest request = Request(trials);
    request.set_workload(workload);
    v1::Job job;
    const grpc::Status created = Call(*tuning, &TuningStub::CreateJob, request, &job);
    EXPECT_THAT(created, IsOk()) << created.error_message();
    return WaitForEnd(job.id());
  }
  static std::vector<v1::Record> All(ServiceHarness& harness, v1::ListRecordsRequest request = {},
                                     int page = 7) {
    std::vector<v1::Record> records;
    request.set_page_size(page);
    do {
      v1::ListRecordsResponse response;
      const grpc::Status status =
          Call(*harness.tuning, &TuningStub::ListRecords, request, &response);
      EXPECT_THAT(status, IsOk()) << status.error_message();
      EXPECT_LE(response.records_size(), page);
      for (const v1::Record& record : response.records()) records.push_back(record);
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    return records;
  }
  absl::Status Backup(const std::string& path, v1::BackupStoreResponse* response) {
    v1::BackupStoreRequest request;
    request.set_path(path);
    return rpc::FromGrpc(Call(*admin_, &AdminStub::BackupStore, request, response));
  }

  ServiceHarness other_;
  std::unique_ptr<AdminStub> admin_;
};

TEST_F(AdminStoreTest, ExportIsImportedOnceByAnotherServer) {
  Tune(20);
  const std::vector<v1::Record> records = All(*this);
  ASSERT_GE(records.size(), 20u);
  const Exported exported = Export(*this);
  ASSERT_THAT(exported.status, IsOk());
  const Imported first = Import(other_, exported.text);
  ASSERT_THAT(first.status, IsOk());
  EXPECT_EQ(first.counts.added(), static_cast<int64_t>(records.size()));
  EXPECT_EQ(first.counts.known(), 0);
  const Imported again = Import(other_, exported.text, 1 << 20);
  ASSERT_THAT(again.status, IsOk());
  EXPECT_EQ(again.counts.added(), 0);
  EXPECT_EQ(again.counts.known(), static_cast<int64_t>(records.size()));
  std::vector<v1::Record> there = All(other_);
  ASSERT_EQ(there.size(), records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_THAT(there[i].job_id(), testing::EndsWith("/" + records[i].job_id()));
    there[i].set_id(records[i].id());
    there[i].set_job_id(records[i].job_id());
    EXPECT_EQ(there[i].SerializeAsString(), records[i].SerializeAsString()) << i;
  }
  // An import publishes nothing, but jobs start from the imported records.
  v1::Best best;
  EXPECT_EQ(Call(*other_.tuning, &TuningStub::LookupBest, BestOf(), &best).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(AdminStoreTest, FiltersApplyToListsAndExports) {
  const v1::Job first = Tune(12);
  const v1::Job second = Tune(12, "fake other 9");
  const std::vector<v1::Record> all = All(*this);
  v1::Best best;
  ASSERT_THAT(Call(*tuning, &TuningStub::LookupBest, BestOf(), &best), IsOk());
  const int64_t middle = all[all.size() / 2].created_unix_ms();
  struct Case {
    const char* what;
    std::function<void(v1::ListRecordsRequest&)> ask;
    std::function<bool(const v1::Record&)> fits;
  };
  const Case cases[] = {
      {"all", [](auto&) {}, [](const auto&) { return true; }},
      {"operator", [](auto& r) { r.set_operator_("other"); },
       [](const auto& r) { return r.operator_() == "other"; }},
      {"job", [&](auto& r) { r.set_job_id(first.id()); },
       [&](const auto& r) { return r.job_id() == first.id(); }},
      {"workload", [&](auto& r) { r.set_workload_digest(second.workload_digest()); },
       [&](const auto& r) { return r.workload_digest() == second.workload_digest(); }},
      {"target", [](auto& r) { r.set_target("nowhere"); }, [](const auto&) { return false; }},
      {"since", [&](auto& r) { r.set_since_unix_ms(middle); },
       [&](const auto& r) { return r.created_unix_ms() >= middle; }},
      {"until", [&](auto& r) { r.set_until_unix_ms(middle); },
       [&](const auto& r) { return r.created_unix_ms() < middle; }},
      {"outcome", [](auto& r) { r.set_outcome("crash"); }, [](const auto&) { return false; }},
      {"quarantined", [](auto& r) { r.set_quarantine(v1::QUARANTINE_ONLY); },
       [](const auto& r) { return r.quarantined(); }},
      {"sound", [](auto& r) { r.set_quarantine(v1::QUARANTINE_NONE); },
       [](const auto& r) { return !r.quarantined(); }},
      {"two at once",
       [&](auto& r) {
         r.set_job_id(first.id());
         r.set_operator_("other");
       },
       [](const auto&) { return false; }},
  };
  for (const Case& c : cases) {
    v1::ListRecordsRequest request;
    c.ask(request);
    std::set<int64_t> expected, listed;
    for (const v1::Record& record : all) {
      if (c.fits(record)) expected.insert(record.id());
    }
    for (const v1::Record& record : All(*this, request)) {
      EXPECT_TRUE(listed.insert(record.id()).second) << c.what << ": listed on two pages";
    }
    EXPECT_EQ(listed, expected) << c.what;
    const Exported exported = Export(*this, request);
    ASSERT_THAT(exported.status, IsOk()) << c.what;
    const auto end = nlohmann::json::parse(Lines(exported.text).back());
    EXPECT_EQ(end["end"]["records"], expected.size()) << c.what;
  }
  v1::ListRecordsRequest published;
  published.set_best_only(true);
  const std::vector<v1::Record> bests = All(*this, published);
  ASSERT_EQ(bests.size(), 2u) << "one per workload";
  EXPECT_TRUE(bests[0].id() == best.record().id() || bests[1].id() == best.record().id());
}

TEST_F(AdminStoreTest, NearestAndRevalidateUseImportedConfirmations) {
  const v1::Job tuned = Tune(150);
  ASSERT_EQ(tuned.state(), v1::JOB_STATE_DONE) << tuned.error();
  ASSERT_THAT(Import(other_, Export(*this).text).status, IsOk());
  v1::ListRecordsRequest unpublished;
  unpublished.set_unpublished_best(true);
  EXPECT_EQ(All(*this, unpublished).size(), 0u);
  const std::vector<v1::Record> bests = All(other_, unpublished);
  ASSERT_EQ(bests.size(), 1u);

  v1::LookupBestRequest lookup = BestOf("fake op 3");
  lookup.set_nearest(true);
  v1::Best best;
  const grpc::Status unknown = Call(*other_.tuning, &TuningStub::LookupBest, lookup, &best);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(unknown.error_message(), HasSubstr("connect a worker")) << "what t stands for";

  RemoteWorker worker(other_.channel, "w");
  v1::CreateJobRequest request = Request(1, "again");
  request.set_revalidate(1);
  request.clear_workload();
  request.set_workload_digest(bests[0].workload_digest());
  v1::Job job;
  const grpc::Status created = Call(*other_.tuning, &TuningStub::CreateJob, request, &job);
  ASSERT_THAT(created, IsOk()) << created.error_message();
  // The worker has registered, so that a look-up can adapt the imported record.
  const grpc::Status found = Call(*other_.tuning, &TuningStub::LookupBest, lookup, &best);
  ASSERT_THAT(found, IsOk()) << found.error_message();
  EXPECT_EQ(best.nearest().workload(), "fake op 12");
  job = other_.WaitForEnd(job.id());
  ASSERT_EQ(job.state(), v1::JOB_STATE_DONE) << job.error();
  EXPECT_EQ(job.best().record().candidate().DebugString(), bests[0].candidate().DebugString());
  EXPECT_EQ(All(other_, unpublished).size(), 0u) << "published now";
}

TEST_F(AdminStoreTest, InvalidListRequestNamesTheField) {
  struct Case {
    const char* field;
    std::function<void(v1::ListRecordsRequest&)> spoil;
  };
  const Case cases[] = {
      {"outcome", [](auto& r) { r.set_outcome("fine"); }},
      {"page_size", [](auto& r) { r.set_page_size(-1); }},
      {"page_token", [](auto& r) { r.set_page_token("1; DROP TABLE record"); }},
      {"1970", [](auto& r) { r.set_since_unix_ms(-1); }},
      {"job_id", [](auto& r) { r.set_job_id(std::string(4000, 'x')); }},
      {"quarantine", [](auto& r) { r.set_quarantine(static_cast<v1::Quarantine>(9)); }},
  };
  for (const Case& c : cases) {
    v1::ListRecordsRequest request;
    c.spoil(request);
    v1::ListRecordsResponse response;
    const grpc::Status status = Call(*tuning, &TuningStub::ListRecords, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << c.field;
    EXPECT_THAT(status.error_message(), HasSubstr(FieldWords(c.field)));
  }
}

TEST_F(AdminStoreTest, BadImportNamesTheLineAndAddsNothing) {
  Tune(8);
  const std::string good = Export(*this).text;
  const size_t records = All(*this).size();
  std::vector<std::string> lines = Lines(good);
  const auto find = [&](const char* beginning) {
    return std::find_if(lines.begin(), lines.end(),
                        [&](const std::string& line) { return line.rfind(beginning, 0) == 0; }) -
           lines.begin();
  };
  const size_t record = find("{\"record\""), text = find("{\"digest\"");
  ASSERT_LT(record, lines.size());
  ASSERT_LT(text, lines.size());
  const auto with = [&](size_t line, const std::string& what) {
    std::vector<std::string> changed = lines;
    changed[line] = what;
    return absl::StrJoin(changed, "\n") + "\n";
  };
  struct Case {
    const char* what;
    std::string text;
    std::string names;
  };
  nlohmann::json negative = nlohmann::json::parse(lines[record]);
  negative["record"]["latency_ns"] = -1.0;
  nlohmann::json unknown = nlohmann::json::parse(lines[record]);
  unknown["record"]["colour"] = "red";
  nlohmann::json unlisted = nlohmann::json::parse(lines[record]);
  unlisted["record"]["max_error"] = nullptr;
  const std::string line = absl::StrCat("line ", record + 1);
  const Case cases[] = {
      {"cut off", good.substr(0, good.size() / 2), ""},
      {"without its end", good.substr(0, good.rfind("{\"end\"")), ""},
      {"no JSON", with(record, "{\"record\":"), line},
      {"a negative latency", with(record, negative.dump()), line},
      {"a number that no list can have", with(record, unlisted.dump()), line},
      {"an unknown field", with(record, unknown.dump()), line},
      {"invalid UTF-8", with(record, "{\"record\":\"\xc3\x28\"}"), line},
      {"nested too deep", with(record, std::string(100'000, '[')), line},
      {"a text that is not its digest's",
       with(text, absl::StrReplaceAll(lines[text], {{"\"text\":\"", "\"text\":\"x"}})), ""},
      {"of a later form", with(0, "{\"hone_records\":2,\"store\":\"x\"}"), "line 1"},
      {"nothing", "", ""},
      {"something else", "workload matmul\n", "line 1"},
  };
  for (const Case& c : cases) {
    const Imported imported = Import(other_, c.text);
    EXPECT_THAT(imported.status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.names)))
        << c.what;
  }
  EXPECT_TRUE(All(other_).empty());
  // The server still works as before.
  const auto counts = Import(other_, good).counts;
  // The device of the test may measure a leader twice in one millisecond, which is one record.
  EXPECT_EQ(counts.added() + counts.known(), static_cast<int64_t>(records));
}

TEST_F(AdminStoreTest, AbortedImportAddsNothing) {
  Tune(8);
  const std::string good = Export(*this).text;
  {
    const auto admin = v1::AdminService::NewStub(other_.channel);
    grpc::ClientContext context;
    v1::ImportRecordsResponse response;
    auto writer = admin->ImportRecords(&context, &response);
    v1::TextChunk chunk;
    chunk.set_data(good.substr(0, good.size() - 10));
    writer->Write(chunk);
    context.TryCancel();
    EXPECT_FALSE(writer->Finish().ok());
  }
  EXPECT_TRUE(All(other_).empty());
  EXPECT_THAT(Import(other_, good).status, IsOk());
}

TEST_F(AdminStoreTest, BackupIsACompleteStore) {
  Tune(8);
  const std::string path = folder + "/copy.db";
  v1::BackupStoreResponse report;
  ASSERT_THAT(Backup(path, &report), IsOk());
  EXPECT_EQ(report.records(), static_cast<int64_t>(All(*this).size()));
  EXPECT_EQ(report.size_bytes(), static_cast<int64_t>(std::filesystem::file_size(path)));
  EXPECT_THAT(Backup(path, &report), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(Backup("copy.db", &report), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Backup("", &report), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Backup(folder + "/no/such/folder/x.db", &report),
              StatusIs(absl::StatusCode::kNotFound));
  HONE_ASSERT_OK_AND_ASSIGN(const auto copy, store::OpenSqliteStore(path));
  EXPECT_EQ(copy->Query({.page_size = 1000})->size(), All(*this).size());
}

TEST_F(AdminStoreTest, CompactionReportsRemovalsAndKeepsTheBest) {
  Tune(30);
  const size_t before = All(*this).size();
  v1::CompactStoreRequest request;
  v1::CompactStoreResponse report;
  request.set_keep_unix_ms(absl::ToUnixMillis(absl::Now() + absl::Hours(1)));
  request.set_keep_best(2);
  request.set_dry_run(true);
  // Records of the job are removable only after its end is stored.
  EXPECT_TRUE(Eventually([&] {
    EXPECT_THAT(Call(*admin_, &AdminStub::CompactStore, request, &report), IsOk());
    return report.records_removed() > 0;
  }));
  const int64_t removed = report.records_removed();
  EXPECT_EQ(All(*this).size(), before) << "a dry run removes nothing";
  request.set_dry_run(false);
  ASSERT_THAT(Call(*admin_, &AdminStub::CompactStore, request, &report), IsOk());
  EXPECT_EQ(report.records_removed(), removed);
  EXPECT_EQ(All(*this).size(), before - static_cast<size_t>(removed));
  v1::Best best;
  EXPECT_THAT(Call(*tuning, &TuningStub::LookupBest, BestOf(), &best), IsOk());
  request.set_keep_best(-1);
  EXPECT_EQ(Call(*admin_, &AdminStub::CompactStore, request, &report).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(AdminStoreTest, ACompactionByPolicyRemovesNothingNew) {
  Tune(30);
  const size_t before = All(*this).size();
  v1::CompactStoreRequest request;
  v1::CompactStoreResponse report;
  request.set_by_policy(true);
  for (const bool dry_run : {true, false}) {
    request.set_dry_run(dry_run);
    ASSERT_THAT(Call(*admin_, &AdminStub::CompactStore, request, &report), IsOk());
    EXPECT_EQ(report.records_removed() + report.jobs_removed() + report.events_removed(), 0);
    EXPECT_GT(report.bytes_before(), 0);
  }
  EXPECT_EQ(All(*this).size(), before);
  request.set_keep_unix_ms(1);
  EXPECT_EQ(Call(*admin_, &AdminStub::CompactStore, request, &report).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace hone::service
