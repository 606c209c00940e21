// A full disk: writes wait, acknowledged writes are kept, and the store works again once there is
// space.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "tests/server/store/child_process.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

constexpr int kSkipped = 77;

// A write in progress.
struct Pending {
  absl::Notification done;
  absl::Status status;
};

std::shared_ptr<Pending> StartPut(Store& store, const std::string& digest) {
  auto pending = std::make_shared<Pending>();
  store.PutText(digest, std::string(10000, 'x'), [pending](absl::Status status) {
    pending->status = std::move(status);
    pending->done.Notify();
  });
  return pending;
}

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
  std::shared_ptr<Pending> pending;
  for (int i = 0; store->CheckSpace().ok(); ++i) {
    if (i == 10000) return failed(2, absl::OkStatus());  // the disk never got full
    kept.push_back(absl::StrCat("text ", i));
    pending = StartPut(*store, kept.back());
    while (!pending->done.HasBeenNotified() && store->CheckSpace().ok()) {
      absl::SleepFor(absl::Microseconds(100));
    }
    if (pending->done.HasBeenNotified() && !pending->status.ok()) return failed(3, pending->status);
  }
  const absl::Status full = store->CheckSpace();
  if (!absl::IsResourceExhausted(full)) return failed(4, full);
  if (!absl::StrContains(full.message(), "free space")) return failed(4, full);
  // Reads work on a full disk. The write waits, and one that must not wait fails.
  if (!store->GetText(kept.front()).ok()) return failed(5, store->GetText(kept.front()).status());
  const absl::Status refused = Wait([&](Store::Done done) {
    store->PutCached({.name = "a name", .value = "a value"}, std::move(done));
  });
  if (!absl::IsResourceExhausted(refused)) return failed(6, refused);
  absl::SleepFor(absl::Milliseconds(1200));
  if (pending->done.HasBeenNotified()) return failed(7, pending->status);
  if (!make_space()) return failed(8, absl::OkStatus());
  if (!pending->done.WaitForNotificationWithTimeout(absl::Seconds(30))) return failed(9, full);
  if (!pending->status.ok()) return failed(9, pending->status);
  if (!store->CheckSpace().ok()) return failed(10, store->CheckSpace());
  kept.push_back("after");
  if (const absl::Status status = PutText(*store, "after", "text"); !status.ok()) {
    return failed(11, status);
  }
  store.reset();
  opened = OpenSqliteStore(path);
  if (!opened.ok()) return failed(12, opened.status());
  for (const std::string& digest : kept) {
    if (!(*opened)->GetText(digest).ok()) return failed(13, (*opened)->GetText(digest).status());
  }
  return absl::IsNotFound((*opened)->GetCached("a name", "").status()) ? 0 : failed(14, full);
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
