// A full disk: writes fail with ResourceExhausted, acknowledged writes are kept, and the store
// works again once there is space.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/store/child_process.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

constexpr int kSkipped = 77;

// Writes until the store is full, makes space, and continues. Returns 0, or the number of the step
// that failed.
int FillAndGoOn(const std::string& path, const std::function<bool()>& make_space) {
  const auto failed = [](int step, const absl::Status& status) {
    std::fprintf(stderr, "step %d: %s\n", step, status.ToString().c_str());
    return step;
  };
  absl::StatusOr<std::unique_ptr<Store>> opened = OpenSqliteStore(path);
  if (!opened.ok()) return failed(1, opened.status());
  std::unique_ptr<Store> store = *std::move(opened);
  std::vector<std::string> kept;
  absl::Status full;
  for (int i = 0; full.ok(); ++i) {
    if (i == 10000) return failed(2, full);  // the disk never got full
    const std::string digest = absl::StrCat("text ", i);
    full = PutText(*store, digest, std::string(10000, 'x'));
    if (full.ok()) kept.push_back(digest);
  }
  if (!absl::IsResourceExhausted(full)) return failed(3, full);
  if (!absl::StrContains(full.message(), "free space")) return failed(4, full);
  // Reads work on a full disk. A second attempt to write fails with the same error.
  if (!store->GetText(kept.front()).ok()) return failed(5, store->GetText(kept.front()).status());
  if (const absl::Status again = PutText(*store, "again", std::string(100000, 'x'));
      !absl::IsResourceExhausted(again)) {
    return failed(6, again);
  }
  if (!make_space()) return failed(7, absl::OkStatus());
  if (const absl::Status status = PutText(*store, "after", std::string(10000, 'y')); !status.ok()) {
    return failed(8, status);
  }
  kept.push_back("after");
  store.reset();
  opened = OpenSqliteStore(path);
  if (!opened.ok()) return failed(9, opened.status());
  for (const std::string& digest : kept) {
    if (!(*opened)->GetText(digest).ok()) return failed(10, (*opened)->GetText(digest).status());
  }
  if (!absl::IsNotFound((*opened)->GetText("again").status())) return failed(11, full);
  return 0;
}

TEST(DiskFull, FileSizeLimitActsAsAFullDisk) {
  TemporaryFolder folder;
  ChildProcess child([&](int) {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 1 << 20;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return kSkipped;
    return FillAndGoOn(folder / "hone.db", [&] {
      limit.rlim_cur = before;
      return setrlimit(RLIMIT_FSIZE, &limit) == 0;
    });
  });
  const int result = child.Wait();
  if (result == kSkipped) GTEST_SKIP() << "cannot limit the size of files";
  EXPECT_EQ(result, 0) << "the number of the failed step";
}

// Uses a small file system mounted by the child, with a ballast file that is deleted to make space.
TEST(DiskFull, SurvivesAFullFileSystem) {
  TemporaryFolder folder;
  ChildProcess child([&](int) {
    const int own_user = geteuid() == 0 ? 0 : CLONE_NEWUSER;
    if (unshare(CLONE_NEWNS | own_user) != 0) return kSkipped;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kSkipped;
    if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=3m") != 0) return kSkipped;
    const std::string ballast = folder / "ballast";
    std::ofstream(ballast) << std::string(1 << 20, 'b') << std::flush;
    return FillAndGoOn(folder / "hone.db", [&] { return std::filesystem::remove(ballast); });
  });
  const int result = child.Wait();
  if (result == kSkipped) GTEST_SKIP() << "this user may not mount a file system";
  EXPECT_EQ(result, 0) << "the number of the failed step";
}

// A store that was closed before its disk filled up: opening it reports the full disk, and works
// again once there is space.
TEST(DiskFull, OpeningAnOldStoreReportsAFullDisk) {
  TemporaryFolder folder;
  ChildProcess child([&](int pipe) {
    const int own_user = geteuid() == 0 ? 0 : CLONE_NEWUSER;
    if (unshare(CLONE_NEWNS | own_user) != 0) return kSkipped;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kSkipped;
    if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=3m") != 0) return kSkipped;
    const std::string path = folder / "hone.db";
    if (!PutText(*OpenSqliteStore(path).value(), "t", "text").ok()) return 1;
    std::ofstream(folder / "ballast") << std::string(8 << 20, 'b') << std::flush;
    const absl::Status full = OpenSqliteStore(path).status();
    WriteLine(pipe, full.ToString());
    if (!absl::IsResourceExhausted(full)) return 2;
    std::filesystem::remove(folder / "ballast");
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(path);
    if (!store.ok() || (*store)->GetText("t").value_or("") != "text") return 3;
    return 0;
  });
  const std::string message = child.ReadLine();
  const int result = child.Wait();
  if (result == kSkipped) GTEST_SKIP() << "this user may not mount a file system";
  EXPECT_EQ(result, 0) << message;
}

TEST(DiskFull, OpeningANewStoreReportsAFullDisk) {
  TemporaryFolder folder;
  ChildProcess child([&](int pipe) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {.rlim_cur = 8192, .rlim_max = RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return kSkipped;
    const absl::Status status = OpenSqliteStore(folder / "hone.db").status();
    WriteLine(pipe, status.ToString());
    return absl::IsResourceExhausted(status) ? 0 : 1;
  });
  const std::string message = child.ReadLine();
  const int result = child.Wait();
  if (result == kSkipped) GTEST_SKIP() << "cannot limit the size of files";
  EXPECT_EQ(result, 0) << message;
  // It opens once there is space: the failed attempt left nothing in the way.
  EXPECT_THAT(OpenSqliteStore(folder / "hone.db"), IsOk());
}

}  // namespace
}  // namespace hone::store
