#ifndef HONE_TESTS_SERVER_STORE_STORE_ROWS_H_
#define HONE_TESTS_SERVER_STORE_STORE_ROWS_H_

#include <memory>
#include <string>

#include "common/record/record.h"
#include "gtest/gtest.h"
#include "server/store/store.h"
#include "tests/server/store/store_factories.h"
#include "tests/server/store/temporary_folder.h"

namespace hone::store {

inline constexpr char kWorkload[] = "0000000000000000000000000000000a";
inline constexpr char kSpace[] = "0000000000000000000000000000000b";
inline constexpr char kArtifact[] = "0000000000000000000000000000000c";
inline constexpr char kTarget[] = "x86_64-generic-sse-2c-01234567";

// A confirmed record of kWorkload with every field set to something of its own.
record::Record ConfirmedRecord(double latency_ns = 1234.5);
// The same as an ordinary trial.
record::Record ScreenedRecord(double latency_ns = 1234.5);
// Equality of every field; "not a number" equals itself.
void ExpectEqual(const record::Record& actual, const record::Record& expected);
// Puts the texts and the artifact that ConfirmedRecord needs to be published.
void PutTextsAndArtifact(Store& store);

JobRow PendingJob(const std::string& id, int64_t created_unix_ms = 1);

// A store of one implementation in a folder of its own.
class StoreConformanceTest : public testing::TestWithParam<StoreFactory> {
 protected:
  void SetUp() override { Reopen(); }
  // Closes the store, when it is open, and opens it again.
  void Reopen();

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

// The name of a parameter in the test's name.
std::string FactoryName(const testing::TestParamInfo<StoreFactory>& info);

}  // namespace hone::store

#endif  // HONE_TESTS_SERVER_STORE_STORE_ROWS_H_
