// A store of millions of records, with look-ups of the best while records arrive.
//   build/release/bench/store_scale_benchmark STORE [RECORDS [SECONDS]]
// STORE is a file that is created and filled with RECORDS records (default 10,000,000; about 10 GB
// and ten minutes), and reused if it exists; or postgresql://… . Then, for SECONDS (60), this
// process makes 500 look-ups and 1000 inserts per second. load_benchmark --store does the same
// through gRPC. At the end, pages of records are read in every order. Asserts nothing.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/target/target.h"
#include "server/job/actor/compiler_environment.h"
#include "server/store/sqlite/connection.h"
#include "server/store/tables.h"
#include "tests/bench/store/known_workloads.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"

namespace hone {
namespace {

constexpr int64_t kAppended = 200'000;  // the others are copies of these, made in the database
constexpr double kLookupsPerSecond = 500;
constexpr double kInsertsPerSecond = 1000;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "store_scale_benchmark: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Check(absl::StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

struct Known {
  std::string digest;
  std::string space;
};

record::Record TrialOf(const Known& workload, const std::string& target, int64_t trial) {
  record::Record record = store::ScreenedRecord(1e6 + static_cast<double>(trial));
  record.workload_digest = workload.digest;
  record.target = target;
  record.tolerance = 0;
  record.candidate = {.space_digest = workload.space, .decisions = {}};
  record.trial = trial;
  record.created_unix_ms = absl::ToUnixMillis(absl::Now());
  record.result.samples_ns.assign(20, 1e6 + static_cast<double>(trial));
  record.result.detail.clear();
  return record;
}

// Returns the known workloads; in a new store, publishes their default schedules.
std::vector<Known> PutBests(store::Store& store, const job::TaskEnvironment& environment,
                            const target::Target& target, bool fresh) {
  std::vector<Known> all;
  Check(store::PutArtifact(store, store::kArtifact, std::string(20000, 'a')));
  for (int i = 0; i < kKnownWorkloads; ++i) {
    const ir::Workload workload = Check(KnownWorkload(i));
    const auto spaces = Check(environment.Open(workload.ToText(), target.ToText(), "", 0));
    const std::string digest = spaces->default_schedule().space_digest;
    Known known{workload.StructuralDigest().ToHex(), digest};
    all.push_back(known);
    if (!fresh) continue;
    Check(store::PutText(store, known.digest, workload.ToText()));
    for (const job::SpaceInfo& space : spaces->spaces()) {
      if (space.digest == digest) Check(store::PutText(store, digest, space.text));
    }
    record::Record best = TrialOf(known, target.Key(), 0);
    best.policy.name = "confirm";
    Check(store::PublishBest(store, Check(store::Append(store, best)).id));
  }
  return all;
}

int64_t Newest(store::Store& store) {
  const auto newest = Check(store.Query({.page_size = 1, .newest_first = true}));
  return newest.empty() ? 0 : newest[0].id;
}

void Append(store::Store& store, const std::vector<Known>& workloads, const std::string& target,
            int64_t records) {
  const absl::Time start = absl::Now();
  const int64_t have = Newest(store);
  for (int64_t i = have; i < records; ++i) {
    store.Append(TrialOf(workloads[i % kKnownWorkloads], target, i),
                 [](absl::StatusOr<record::Record> record) { Check(record.status()); });
    if (i % 8192 == 0) Check(store.Flush());
  }
  Check(store.Flush());
  if (records <= have) return;
  std::printf("%lld appended, %.0f a second\n", static_cast<long long>(records - have),
              static_cast<double>(records - have) / absl::ToDoubleSeconds(absl::Now() - start));
}

// Copies the appended records of a closed store until it has `records`.
void Copy(const std::string& path, int64_t records) {
  const auto database = Check(store::SqliteConnection::OpenForWriting(path));
  Check(database->SetUpForWriting());
  Check(database->Execute(
      "PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -1000000"));
  const absl::Time start = absl::Now();
  const int64_t have = Check(database->QueryInt64("SELECT MAX(id) FROM record"));
  for (int64_t last = have; last < records;) {
    const int64_t count = std::min(kAppended, records - last);
    const std::string columns = absl::StrCat(store::Columns().insert, ", environment");
    const std::string values = absl::StrReplaceAll(
        columns, {{" trial,", absl::StrCat(" trial + ", last, ",")},
                  {" created_unix_ms,", absl::StrCat(" created_unix_ms + ", last / 1000, ",")}});
    Check(database->Execute(absl::StrCat("INSERT INTO record (", columns, ") SELECT ", values,
                                         " FROM record ORDER BY id LIMIT ", count)));
    Check(database->Checkpoint());
    last += count;
  }
  if (records <= have) return;
  std::printf("%lld copied, %.0f a second\n", static_cast<long long>(records - have),
              static_cast<double>(records - have) / absl::ToDoubleSeconds(absl::Now() - start));
}

// Calls `look_up` at its rate while records arrive at theirs, and prints the latencies. Each call
// has a scheduled time, from which its latency counts.
void Measure(const char* what, store::Store& store, const std::vector<Known>& workloads,
             const std::string& target, absl::Duration time,
             const std::function<void(const Known&)>& look_up) {
  std::atomic<bool> stop = false;
  std::atomic<int64_t> inserted = 0;
  std::thread inserting([&] {
    const absl::Time start = absl::Now();
    for (int64_t i = 0; !stop; ++i) {
      const absl::Time moment = start + absl::Seconds(static_cast<double>(i) / kInsertsPerSecond);
      if (moment > absl::Now()) absl::SleepFor(moment - absl::Now());
      store.Append(TrialOf(workloads[i % kKnownWorkloads], target, i),
                   [&](absl::StatusOr<record::Record> record) {
                     Check(record.status());
                     ++inserted;
                   });
    }
  });
  Rng rng(1);
  std::vector<double> ms;
  const absl::Time start = absl::Now();
  for (int64_t i = 0;; ++i) {
    const absl::Time moment = start + absl::Seconds(static_cast<double>(i) / kLookupsPerSecond);
    if (moment > start + time) break;
    if (moment > absl::Now()) absl::SleepFor(moment - absl::Now());
    look_up(workloads[rng.Below(kKnownWorkloads)]);
    ms.push_back(absl::ToDoubleMilliseconds(absl::Now() - moment));
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  stop = true;
  inserting.join();
  Check(store.Flush());
  std::sort(ms.begin(), ms.end());
  const auto at = [&](double share) { return ms[static_cast<size_t>(share * (ms.size() - 1))]; };
  std::printf(
      "%-12s %5.0f look-ups/s beside %5.0f inserts/s: p50 %.3f ms, p99 %.3f ms, max %.1f ms\n",
      what, static_cast<double>(ms.size()) / seconds, static_cast<double>(inserted) / seconds,
      at(0.5), at(0.99), ms.back());
}

// Reads pages of 200 records that begin behind random records, and first pages, in every order.
void MeasureOrders(store::Store& store, const Known& known, const std::string& target) {
  struct Order {
    const char* name;
    store::RecordQuery query;
  };
  const Order orders[] = {
      {"number", {}},
      {"time", {.order = store::RecordOrder::kTime}},
      {"operator", {.order = store::RecordOrder::kOperator}},
      {"workload", {.order = store::RecordOrder::kWorkload}},
      {"target", {.order = store::RecordOrder::kTarget}},
      {"job", {.order = store::RecordOrder::kJob}},
      {"latency", {.order = store::RecordOrder::kLatency}},
      {"latency of a task",
       {.workload_digest = known.digest, .target = target, .order = store::RecordOrder::kLatency}}};
  const int64_t newest = Newest(store);
  Rng rng(2);
  for (const auto& [name, asked] : orders) {
    std::vector<double> ms;
    for (int i = 0; i < 100; ++i) {
      store::RecordQuery query = asked;
      query.page_size = 200;
      query.newest_first = i % 2 == 1;
      if (i >= 2) {
        const auto id = static_cast<int64_t>(1 + rng.Below(newest - 1));
        const auto begin = Check(store.Query({.page_size = 1, .after_id = id}));
        query.after = store::PlaceOf(begin[0], query.order);
        (query.newest_first ? query.before_id : query.after_id) = begin[0].id;
      }
      const absl::Time start = absl::Now();
      Check(store.Query(query).status());
      ms.push_back(absl::ToDoubleMilliseconds(absl::Now() - start));
    }
    const double first = std::max(ms[0], ms[1]);
    std::sort(ms.begin(), ms.end());
    std::printf("by %-18s first pages %.1f ms; any page: p50 %.1f ms, max %.1f ms\n", name, first,
                ms[ms.size() / 2], ms.back());
  }
}

int Main(const std::string& place, int64_t records, int seconds) {
  const bool is_file = !absl::StartsWith(place, "postgres");
  std::unique_ptr<store::Store> store = Check(store::OpenStore(place));
  Check(store->Lead());
  const auto environment = job::MakeCompilerEnvironment(2);
  const target::Target target = target::DetectHost();
  const bool fresh = Newest(*store) == 0;
  const std::vector<Known> workloads = PutBests(*store, *environment, target, fresh);
  Append(*store, workloads, target.Key(), is_file ? std::min(kAppended, records) : records);
  if (is_file) {
    store.reset();
    Copy(place, records);
    store = Check(store::OpenStore(place));
  }
  std::printf("%lld records, %.1f GB\n", static_cast<long long>(Newest(*store)),
              static_cast<double>(store->Health().size_bytes) / 1e9);
  std::fflush(stdout);
  Measure(
      "in process", *store, workloads, target.Key(), absl::Seconds(seconds),
      [&](const Known& known) {
        Check(
            store->LookupBest({.workload_digest = known.digest, .target = target.Key()}).status());
      });
  MeasureOrders(*store, workloads[0], target.Key());
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  int64_t records = 10'000'000;
  int seconds = 60;
  if (argc < 2 || (argc > 2 && !absl::SimpleAtoi(argv[2], &records)) ||
      (argc > 3 && !absl::SimpleAtoi(argv[3], &seconds))) {
    std::fprintf(stderr, "usage: store_scale_benchmark STORE [RECORDS [SECONDS]]\n");
    return 2;
  }
  return hone::Main(argv[1], records, seconds);
}
