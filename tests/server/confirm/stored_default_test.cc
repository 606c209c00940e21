#include "common/record/processes.h"
#include "gtest/gtest.h"
#include "server/confirm/finalist.h"

namespace hone::job {
namespace {

class StoredDefaultTest : public ::testing::Test {
 protected:
  // A process of a confirmation by a job. Ids are given in the order of the calls.
  record::Record Process(const std::string& job, double latency_ns) {
    record::Record record{.id = ++last_id_, .job_id = job, .is_default = true};
    record.policy = {.name = "confirm", .repeats = 5};
    record.result.latency_ns = latency_ns;
    return record;
  }
  record::Record Screening(const std::string& job, double latency_ns) {
    record::Record record = Process(job, latency_ns);
    record.policy = record::Policy();
    return record;
  }
  // Returns the latency that is confirmed if these records are stored; 0 if none is.
  static double Confirmed(const std::vector<record::Record>& records) {
    StoredDefault forwards, backwards;
    for (auto record = records.begin(); record != records.end(); ++record) forwards.Add(*record);
    for (auto record = records.rbegin(); record != records.rend(); ++record) backwards.Add(*record);
    const std::optional<record::Record> one = forwards.Confirmed(), other = backwards.Confirmed();
    EXPECT_EQ(one.has_value(), other.has_value());
    if (!one || !other) return 0;
    EXPECT_EQ(one->id, other->id);
    EXPECT_EQ(one->result.latency_ns, other->result.latency_ns);
    EXPECT_GE(record::ProcessesOf(one->result), record::kProcesses);
    EXPECT_TRUE(record::IsConfirmed(*one));
    return one->result.latency_ns;
  }

 private:
  int64_t last_id_ = 0;
};

TEST_F(StoredDefaultTest, IsTheMedianOfThreeUndisturbedProcesses) {
  std::vector<record::Record> records = {Screening("1", 900), Process("1", 100), Process("1", 300)};
  EXPECT_EQ(Confirmed(records), 0) << "the screening takes fewer samples";
  records.push_back(Process("1", 2000));
  records.back().quarantined = true;
  EXPECT_EQ(Confirmed(records), 0);
  records.push_back(Process("2", 200));
  EXPECT_EQ(Confirmed(records), 0) << "of another job";
  records.push_back(Process("1", 1));
  records.back().is_default = false;
  EXPECT_EQ(Confirmed(records), 0) << "of another candidate";
  records.push_back(Process("1", 1));
  records.back().result.outcome = record::Outcome::kCrash;
  EXPECT_EQ(Confirmed(records), 0);
  records.push_back(Process("1", 200));
  EXPECT_EQ(Confirmed(records), 200);
}

TEST_F(StoredDefaultTest, IsOfTheLastJobThatConfirmedIt) {
  std::vector<record::Record> records;
  for (int i = 0; i < 3; ++i) records.push_back(Process("1", 100));
  for (int i = 0; i < 3; ++i) records.push_back(Process("2", 200));
  for (int i = 0; i < 2; ++i) records.push_back(Process("3", 300));
  EXPECT_EQ(Confirmed(records), 200);
}

TEST_F(StoredDefaultTest, TheScreeningOfASlowDefaultCounts) {
  std::vector<record::Record> records = {Screening("1", 100)};
  for (const double latency : {200, 300}) {
    EXPECT_EQ(Confirmed(records), 0);
    records.push_back(Process("1", latency));
    records.back().policy.repeats = 0;
  }
  EXPECT_EQ(Confirmed(records), 200);
}

TEST_F(StoredDefaultTest, ADefaultThatWasPublishedHasItsResultInOneRecord) {
  std::vector<record::Record> records;
  for (int i = 0; i < 3; ++i) records.push_back(Process("1", 100));
  records.push_back(Process("1", 120));
  records.back().result.processes = 4;
  EXPECT_EQ(Confirmed(records), 120);
  records.push_back(Process("2", 130));
  records.back().result.processes = 2;
  EXPECT_EQ(Confirmed(records), 120) << "too few processes";
}

}  // namespace
}  // namespace hone::job
