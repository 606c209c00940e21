#ifndef HONE_TESTS_SERVER_STORE_STORE_ROWS_H_
#define HONE_TESTS_SERVER_STORE_STORE_ROWS_H_

#include <memory>
#include <string>

#include "common/record/record.h"
#include "gtest/gtest.h"
#include "server/store/store.h"
#include "tests/server/store/store_factories.h"
#include "tests/temporary_folder.h"

namespace hone::store {

inline constexpr char kWorkload[] = "0000000000000000000000000000000a";
inline constexpr char kSpace[] = "0000000000000000000000000000000b";
inline constexpr char kArtifact[] =
    "000000000000000000000000000000000000000000000000000000000000000c";
inline constexpr char kTarget[] = "x86_64-generic-sse-2c-01234567";

// A confirmed record of kWorkload. Every field has a different, non-default value.
record::Record ConfirmedRecord(double latency_ns = 1234.5);
// The same as an unconfirmed trial.
record::Record ScreenedRecord(double latency_ns = 1234.5);
// Compares every field; NaN equals itself.
void ExpectEqual(const record::Record& actual, const record::Record& expected);
// Puts the texts and the artifact that a ConfirmedRecord needs before it can be published.
void PutTextsAndArtifact(Store& store);

JobRow PendingJob(const std::string& id, int64_t created_unix_ms = 1);

// Opens one implementation of Store in a temporary folder.
class StoreConformanceTest : public testing::TestWithParam<StoreFactory> {
 protected:
  void SetUp() override { Reopen(); }
  // Closes the store if it is open, and opens it again.
  void Reopen();

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

// Names test instances after the parameter.
std::string FactoryName(const testing::TestParamInfo<StoreFactory>& info);

}  // namespace hone::store

#endif  // HONE_TESTS_SERVER_STORE_STORE_ROWS_H_
