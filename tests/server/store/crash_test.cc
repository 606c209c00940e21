// Kills a writing process with SIGKILL: every write whose `done` has run is found afterwards, and
// the store opens and works.
#include <signal.h>

#include <memory>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/store/child_process.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

// Writes records, job events and new bests forever, and reports each as a line once it is done.
int WriteForEver(const std::string& path, int pipe) {
  absl::StatusOr<std::unique_ptr<Store>> opened = OpenSqliteStore(path);
  if (!opened.ok()) return 1;
  Store& store = **opened;
  PutTextsAndArtifact(store);
  const std::string job = absl::StrCat("job ", getpid());
  if (!PutJob(store, PendingJob(job)).ok()) return 2;
  for (int64_t number = 0;; ++number) {
    store.AppendEvent({job, number, "tell", absl::StrCat(number)}, [=](absl::Status status) {
      if (status.ok()) WriteLine(pipe, absl::StrCat("event ", number));
    });
    store.Append(ConfirmedRecord(100 + number), [=, &store](absl::StatusOr<record::Record> record) {
      if (!record.ok()) return;
      WriteLine(pipe, absl::StrCat("record ", record->id));
      if (number % 8 != 0) return;
      const int64_t id = record->id;
      store.PublishBest(id, [=](absl::Status status) {
        if (status.ok()) WriteLine(pipe, absl::StrCat("best ", id));
      });
    });
    if (number % 100 == 99 && !store.Flush().ok()) return 3;
  }
}

TEST(Crash, NothingAcknowledgedIsLostByKill) {
  TemporaryFolder folder;
  const std::string path = folder / "hone.db";
  std::set<int64_t> acknowledged;
  // The same store is crashed several times at different moments.
  for (const int lines : {1, 40, 300, 1111}) {
    int64_t last_event = -1;
    int64_t last_best = -1;
    const auto note = [&](const std::string& line) {
      int64_t number = 0;
      const size_t space = line.find(' ');
      if (space == std::string::npos || !absl::SimpleAtoi(line.substr(space + 1), &number)) return;
      if (line[0] == 'r') acknowledged.insert(number);
      if (line[0] == 'e') last_event = number;
      if (line[0] == 'b') last_best = number;
    };
    std::string job;
    {
      ChildProcess child([&](int pipe) {
        WriteLine(pipe, absl::StrCat("job ", getpid()));
        return WriteForEver(path, pipe);
      });
      job = child.ReadLine();
      for (int i = 0; i < lines; ++i) {
        const std::string line = child.ReadLine();
        ASSERT_NE(line, "") << "the child exited: " << child.Wait();
        note(line);
      }
      child.Kill();
      // Lines left in the pipe are acknowledgements as well.
      for (std::string line = child.ReadLine(); !line.empty(); line = child.ReadLine()) note(line);
      EXPECT_EQ(child.Wait(), -SIGKILL);
    }
    HONE_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store, OpenSqliteStore(path));
    std::set<int64_t> found;
    for (int64_t after = 0;;) {
      HONE_ASSERT_OK_AND_ASSIGN(const auto page,
                                store->Query({.page_size = 1000, .after_id = after}));
      if (page.empty()) break;
      for (const record::Record& record : page) found.insert(record.id);
      after = page.back().id;
    }
    EXPECT_TRUE(
        std::includes(found.begin(), found.end(), acknowledged.begin(), acknowledged.end()));
    HONE_ASSERT_OK_AND_ASSIGN(const auto events, store->Events(job));
    EXPECT_GT(static_cast<int64_t>(events.size()), last_event);
    for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].payload, absl::StrCat(i));
    if (last_best >= 0) {
      HONE_ASSERT_OK_AND_ASSIGN(
          const auto best,
          store->LookupBest(
              {.workload_digest = kWorkload, .target = kTarget, .tolerance = 1e-5, .policy = ""}));
      EXPECT_GE(best.record.id, last_best);
    }
    EXPECT_THAT(PutText(*store, absl::StrCat("after ", lines), "text"), IsOk());
  }
  EXPECT_GT(acknowledged.size(), 300u);
}

}  // namespace
}  // namespace hone::store
