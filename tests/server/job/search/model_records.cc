#include "tests/server/job/search/model_records.h"

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "gtest/gtest.h"
#include "server/job/actor/job_codec.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/status.h"

namespace hone::job {

record::Record TrialOf(const std::string& op, int size, const std::vector<int64_t>& decisions,
                       const std::string& job) {
  record::Record record{.workload_digest = DigestOf(absl::StrCat("fake ", op, " ", size)).ToHex(),
                        .op = op,
                        .target = "t"};
  record.candidate = {DigestOf(absl::StrCat("space of ", op, " searched")).ToHex(), decisions};
  record.result.latency_ns = FakeLatency(decisions);
  record.job_id = job;
  return record;
}

void PutRecord(store::Store& store, const record::Record& record) {
  store.Append(record,
               [](absl::StatusOr<record::Record> appended) { EXPECT_THAT(appended, IsOk()); });
}

std::string PutTrials(store::Store& store, const std::string& op, int size, int count,
                      const std::string& job) {
  const auto ok = [](absl::Status status) { EXPECT_THAT(status, IsOk()); };
  const std::string space = absl::StrCat("space of ", op, " searched");
  store.PutText(DigestOf(space).ToHex(), space, ok);
  store.PutJob({.id = job,
                .request = EncodeSpec({.workload = absl::StrCat("fake ", op, " ", size),
                                       .target_key = "t",
                                       .target = "target of the fake"}),
                .state = "done"},
               ok);
  for (int i = 0; i < count; ++i) {
    PutRecord(store, TrialOf(op, size, {i % size, i / size % size, i / size / size}, job));
  }
  return DigestOf(absl::StrCat("fake ", op, " ", size)).ToHex();
}

}  // namespace hone::job
