// The contract of Store for results of other autotuners.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/store/sqlite/sqlite_store.h"
#include "server/store/tables.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

class CachedConformanceTest : public StoreConformanceTest {
 protected:
  absl::Status Put(CachedRow row) {
    return Wait([&](Store::Done done) { store_->PutCached(std::move(row), std::move(done)); });
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, CachedConformanceTest, testing::ValuesIn(StoreFactories()),
                         FactoryName);

TEST_P(CachedConformanceTest, AValueRoundTrips) {
  const std::string value("\0\xff bytes", 8);
  ASSERT_THAT(Put({.name = "triton/add", .environment = "sm_90", .value = value}), IsOk());
  Reopen();
  HONE_ASSERT_OK_AND_ASSIGN(const CachedRow row, store_->GetCached("triton/add", "sm_90"));
  EXPECT_EQ(row.value, value);
  EXPECT_GT(row.put_unix_ms, 0);
  EXPECT_THAT(store_->GetCached("triton/add", "sm_80"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->GetCached("triton/sub", "sm_90"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(CachedConformanceTest, APutReplacesTheValueOfItsNameAndEnvironment) {
  ASSERT_THAT(Put({.name = "add", .environment = "a", .value = "old"}), IsOk());
  ASSERT_THAT(Put({.name = "add", .environment = "b", .value = "other"}), IsOk());
  ASSERT_THAT(Put({.name = "add", .environment = "a", .value = "new"}), IsOk());
  EXPECT_EQ(store_->GetCached("add", "a")->value, "new");
  EXPECT_EQ(store_->GetCached("add", "b")->value, "other");
}

TEST_P(CachedConformanceTest, SizesAreLimited) {
  const auto refused = [&](CachedRow row, const char* why) {
    EXPECT_THAT(Put(std::move(row)),
                StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr(why)));
  };
  refused({.value = "v"}, "the name of a cached value has 0 bytes");
  refused({.name = std::string(513, 'n'), .value = "v"}, "513 bytes");
  refused({.name = "n", .environment = std::string(1025, 'e'), .value = "v"}, "environment");
  refused({.name = "n"}, "the value of a cached value has 0 bytes");
  refused({.name = "n", .value = std::string((1 << 20) + 1, 'v')}, "1048577");
  // Random text cannot be compressed, so the index has to hold all of it.
  std::string name, environment;
  for (int i = 0; i < 512; ++i) name += static_cast<char>('!' + i * 7919 % 89);
  for (int i = 0; i < 1024; ++i) environment += static_cast<char>('!' + i * i * 31 % 89);
  EXPECT_THAT(Put({name, environment, std::string(1 << 20, 'v')}), IsOk());
}

TEST(CachedTableTest, TheOldestValuesAreForgotten) {
  const auto connection = SqliteConnection::OpenInMemory().value();
  ASSERT_THAT(Migrate(*connection, SqliteMigrations()), IsOk());
  const auto name = [](int64_t i) { return absl::StrCat("name ", i); };
  for (int64_t i = 1; i <= kCachedSteps; ++i)
    ASSERT_THAT(InsertCached(*connection, {name(i), "", std::string(10, 'v'), i}, 100), IsOk());
  EXPECT_EQ(connection->QueryInt64("SELECT COUNT(*) FROM cached").value(), 10);
  EXPECT_THAT(SelectCached(*connection, name(kCachedSteps - 9), ""), IsOk());
  EXPECT_THAT(SelectCached(*connection, name(kCachedSteps - 10), ""),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace hone::store
