// The store with 100,000 records of 1000 workloads: look-ups with their tail, pages, and durable
// writes.
//   build/release/bench/store_benchmark      the store is in TMPDIR, or /tmp
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "benchmark/benchmark.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"

namespace hone::store {
namespace {

constexpr int kWorkloads = 1000;
constexpr int kRecordsEach = 100;

std::string WorkloadDigest(int index) { return DigestOf(absl::StrCat("w", index)).ToHex(); }

record::Record TrialOf(int workload, int trial) {
  record::Record record = ScreenedRecord(1e6 + trial);
  record.workload_digest = WorkloadDigest(workload);
  record.trial = trial;
  record.candidate.decisions.assign(30, trial);
  record.result.samples_ns.assign(20, 1e6 + trial);
  record.result.detail.clear();
  return record;
}

// A store shared by all benchmarks, filled once.
class FilledStore {
 public:
  FilledStore() {
    Check(PutText(*store_, kSpace, std::string(4000, 's')));
    Check(PutArtifact(*store_, kArtifact, std::string(20000, 'a')));
    for (int w = 0; w < kWorkloads; ++w) {
      store_->PutText(WorkloadDigest(w), std::string(500, 'w'), [](absl::Status s) { Check(s); });
      for (int t = 0; t < kRecordsEach; ++t) {
        record::Record record = TrialOf(w, t);
        if (t == kRecordsEach / 2) record.policy.name = "confirm";
        const bool publish = record.policy.name == "confirm";
        store_->Append(std::move(record), [this, publish](absl::StatusOr<record::Record> added) {
          Check(added.status());
          if (publish) store_->PublishBest(added->id, [](absl::Status s) { Check(s); });
        });
      }
      Check(store_->Flush());
    }
    Check(store_->Flush());
  }

  static void Check(const absl::Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::abort();
  }
  Store& store() { return *store_; }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = OpenSqliteStore(folder_ / "hone.db").value();
};

Store& Filled() {
  static auto* const filled = new std::unique_ptr<FilledStore>(std::make_unique<FilledStore>());
  static const int at_exit = std::atexit([] { filled->reset(); });
  (void)at_exit;
  return (*filled)->store();
}

// Collects the time of each iteration for quantiles.
class Latencies {
 public:
  template <typename Call>
  void Time(const Call& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    us_.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
            .count());
  }
  void Report(benchmark::State& state) {
    std::sort(us_.begin(), us_.end());
    state.counters["p50_us"] = At(0.5);
    state.counters["p99_us"] = At(0.99);
    state.counters["max_us"] = us_.back();
    state.SetItemsProcessed(static_cast<int64_t>(us_.size()));
  }

 private:
  double At(double share) const { return us_[static_cast<size_t>(share * (us_.size() - 1))]; }
  std::vector<double> us_;
};

void LookUp(Store& store, Rng& rng) {
  const auto best = store.LookupBest({.workload_digest = WorkloadDigest(rng.Below(kWorkloads)),
                                      .target = kTarget,
                                      .tolerance = 1e-5,
                                      .policy = ""});
  FilledStore::Check(best.status());
}

void BM_LookupBest(benchmark::State& state) {
  Store& store = Filled();
  Rng rng(1);
  Latencies latencies;
  for (auto _ : state) latencies.Time([&] { LookUp(store, rng); });
  latencies.Report(state);
}
BENCHMARK(BM_LookupBest);

// While another thread writes as fast as possible.
void BM_LookupBestBesideWrites(benchmark::State& state) {
  Store& store = Filled();
  std::atomic<bool> stop = false;
  std::thread writing([&] {
    for (int i = 0; !stop; ++i) {
      store.Append(TrialOf(i % kWorkloads, i), [](auto) {});
      if (i % 256 == 255) FilledStore::Check(store.Flush());
    }
  });
  Rng rng(2);
  Latencies latencies;
  for (auto _ : state) latencies.Time([&] { LookUp(store, rng); });
  stop = true;
  writing.join();
  FilledStore::Check(store.Flush());
  latencies.Report(state);
}
BENCHMARK(BM_LookupBestBesideWrites)->UseRealTime();

void BM_QueryPageOfWorkload(benchmark::State& state) {
  Store& store = Filled();
  Rng rng(3);
  Latencies latencies;
  for (auto _ : state) {
    latencies.Time([&] {
      const auto page =
          store.Query({.workload_digest = WorkloadDigest(rng.Below(kWorkloads)), .page_size = 100});
      FilledStore::Check(page.status());
    });
  }
  latencies.Report(state);
}
BENCHMARK(BM_QueryPageOfWorkload);

// Durable inserts per second with up to `range` of them in progress.
void BM_Append(benchmark::State& state) {
  TemporaryFolder folder;
  auto store = OpenSqliteStore(folder / "hone.db").value();
  const int64_t window = state.range(0);
  absl::Mutex mutex;
  int64_t in_flight = 0;
  const auto room = [&] { return in_flight < window; };
  int i = 0;
  for (auto _ : state) {
    {
      absl::MutexLock lock(&mutex, absl::Condition(&room));
      ++in_flight;
    }
    store->Append(TrialOf(i % kWorkloads, i), [&](absl::StatusOr<record::Record> added) {
      FilledStore::Check(added.status());
      absl::MutexLock lock(&mutex);
      --in_flight;
    });
    ++i;
  }
  FilledStore::Check(store->Flush());
  state.SetItemsProcessed(i);
}
BENCHMARK(BM_Append)->Arg(16)->Arg(4096)->UseRealTime()->MinTime(2);

// The latency of a single write without other writes.
void BM_AppendAlone(benchmark::State& state) {
  TemporaryFolder folder;
  auto store = OpenSqliteStore(folder / "hone.db").value();
  Latencies latencies;
  for (auto _ : state) {
    latencies.Time([&] { FilledStore::Check(Append(*store, TrialOf(0, 0)).status()); });
  }
  latencies.Report(state);
}
BENCHMARK(BM_AppendAlone)->UseRealTime();

// A cold start of the server: opens a store of this size and looks up one best.
void BM_OpenAndLookUp(benchmark::State& state) {
  TemporaryFolder folder;
  const std::string path = folder / "hone.db";
  {
    auto store = OpenSqliteStore(path).value();
    FilledStore::Check(PutText(*store, kSpace, "s"));
    FilledStore::Check(PutText(*store, WorkloadDigest(0), "w"));
    FilledStore::Check(PutArtifact(*store, kArtifact, "a"));
    record::Record best = TrialOf(0, 0);
    best.policy.name = "confirm";
    FilledStore::Check(PublishBest(*store, Append(*store, best).value().id));
    for (int i = 0; i < 10000; ++i) store->Append(TrialOf(i % kWorkloads, i), [](auto) {});
    FilledStore::Check(store->Flush());
  }
  Latencies latencies;
  for (auto _ : state) {
    std::unique_ptr<Store> store;
    latencies.Time([&] {
      store = OpenSqliteStore(path).value();
      FilledStore::Check(store
                             ->LookupBest({.workload_digest = WorkloadDigest(0),
                                           .target = kTarget,
                                           .tolerance = 1e-5,
                                           .policy = ""})
                             .status());
    });
  }
  latencies.Report(state);
}
BENCHMARK(BM_OpenAndLookUp)->UseRealTime();

}  // namespace
}  // namespace hone::store

BENCHMARK_MAIN();
