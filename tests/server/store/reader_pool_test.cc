#include "server/store/reader_pool.h"

#include <thread>

#include "gtest/gtest.h"
#include "server/store/sqlite/connection.h"
#include "tests/status.h"

namespace hone::store {
namespace {

TEST(ReaderPoolTest, AWaitForAConnectionEndsWithTheLimitOfTheThread) {
  ReaderPool pool([] { return SqliteConnection::OpenInMemory(); }, /*max_readers=*/1);
  const auto wait = [&pool] {
    int asked = 0;
    const auto check = [&] {
      return ++asked < 3 ? absl::OkStatus() : absl::CancelledError("nobody waits for it");
    };
    const ReadLimit limit(check);
    EXPECT_THAT(pool.With([](Connection&) {
      ADD_FAILURE() << "another thread has the only connection";
      return absl::OkStatus();
    }),
                StatusIs(absl::StatusCode::kCancelled));
  };
  EXPECT_THAT(pool.With([&](Connection&) {
    std::thread(wait).join();
    return absl::OkStatus();
  }),
              IsOk());
  EXPECT_THAT(pool.With([](Connection&) { return absl::OkStatus(); }), IsOk());
}

}  // namespace
}  // namespace hone::store
