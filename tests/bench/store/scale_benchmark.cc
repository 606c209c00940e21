// Look-ups of the best while records arrive, in a store of millions of records: in process and
// through gRPC, as a CI job asks.
//   build/release/bench/store_scale_benchmark STORE [RECORDS [SECONDS]]
// STORE: a file that is made and filled up to RECORDS (default 10,000,000; about 8 GB and ten
// minutes), and used again when it is there; or postgresql://… . Then for SECONDS (60) each: 500
// look-ups a second while 1000 inserts a second arrive. Reports and never asserts.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/ir/workload.h"
#include "common/operator/operator.h"
#include "common/rpc/channel.h"
#include "common/target/target.h"
#include "hone/v1/tuning.grpc.pb.h"
#include "server/service/server.h"
#include "server/task/compiler_environment.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"

namespace hone {
namespace {

constexpr int kWorkloads = 200;
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
  std::string text;
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

// The workloads with their default schedules published.
std::vector<Known> PutBests(store::Store& store, const task::TaskEnvironment& environment,
                            const target::Target& target) {
  std::vector<Known> all;
  Check(store::PutArtifact(store, store::kArtifact, std::string(20000, 'a')));
  for (int i = 0; i < kWorkloads; ++i) {
    const ir::Workload workload = Check(op::BuildWorkload(
        "matmul", {absl::StrCat("m=", 16 + i), "n=64", "k=64"}));
    const auto spaces = Check(environment.Open(workload.ToText(), target.ToText(), "", 0));
    const std::string digest = spaces->default_schedule().space_digest;
    Known known{workload.ToText(), workload.StructuralDigest().ToHex(), digest};
    Check(store::PutText(store, known.digest, known.text));
    for (const task::SpaceInfo& space : spaces->spaces()) {
      if (space.digest == digest) Check(store::PutText(store, digest, space.text));
    }
    record::Record best = TrialOf(known, target.Key(), 0);
    best.policy.name = "confirm";
    Check(store::PublishBest(store, Check(store::Append(store, best)).id));
    all.push_back(std::move(known));
  }
  return all;
}

void Fill(store::Store& store, const std::vector<Known>& workloads, const std::string& target,
          int64_t records) {
  const auto newest = Check(store.Query({.page_size = 1, .newest_first = true}));
  const int64_t have = newest.empty() ? 0 : newest[0].id;
  std::printf("filling from %lld to %lld records\n", static_cast<long long>(have),
              static_cast<long long>(records));
  const absl::Time start = absl::Now();
  for (int64_t i = have; i < records; ++i) {
    store.Append(TrialOf(workloads[i % kWorkloads], target, i),
                 [](absl::StatusOr<record::Record> record) { Check(record.status()); });
    if (i % 8192 == 0) Check(store.Flush());
  }
  Check(store.Flush());
  if (records > have) {
    std::printf("%.0f inserts a second\n",
                static_cast<double>(records - have) / absl::ToDoubleSeconds(absl::Now() - start));
  }
}

// Calls `look_up` at its rate for so long, while records arrive at theirs, and prints how long it
// took. Each call has its moment: a late one counts from it.
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
      store.Append(TrialOf(workloads[i % kWorkloads], target, i),
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
    look_up(workloads[rng.Below(kWorkloads)]);
    ms.push_back(absl::ToDoubleMilliseconds(absl::Now() - moment));
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  stop = true;
  inserting.join();
  Check(store.Flush());
  std::sort(ms.begin(), ms.end());
  const auto at = [&](double share) { return ms[static_cast<size_t>(share * (ms.size() - 1))]; };
  std::printf("%-12s %5.0f look-ups/s beside %5.0f inserts/s: p50 %.3f ms, p99 %.3f ms, max %.1f ms\n",
              what, static_cast<double>(ms.size()) / seconds,
              static_cast<double>(inserted) / seconds, at(0.5), at(0.99), ms.back());
}

int Main(const std::string& place, int64_t records, int seconds) {
  std::unique_ptr<store::Store> owned = Check(store::OpenStore(place));
  store::Store& store = *owned;
  auto environment = task::MakeCompilerEnvironment(2);
  const target::Target target = target::DetectHost();
  const std::vector<Known> workloads = PutBests(store, *environment, target);
  Fill(store, workloads, target.Key(), records);
  Measure("in process", store, workloads, target.Key(), absl::Seconds(seconds),
          [&](const Known& known) {
            Check(store.LookupBest({.workload_digest = known.digest, .target = target.Key()})
                      .status());
          });

  service::ServerOptions options;
  options.listen.push_back(Check(rpc::Address::Parse("localhost:0")));
  const auto server =
      Check(service::Server::Start(std::move(options), std::move(owned), std::move(environment)));
  const auto stub = v1::TuningService::NewStub(
      Check(rpc::CreateChannel(server->addresses().front().ToText(), false)));
  Measure("through gRPC", store, workloads, target.Key(), absl::Seconds(seconds),
          [&](const Known& known) {
            v1::LookupBestRequest request;
            request.set_workload(known.text);
            request.set_target(target.Key());
            v1::Best best;
            grpc::ClientContext context;
            const grpc::Status status = stub->LookupBest(&context, request, &best);
            if (!status.ok()) Check(absl::UnknownError(status.error_message()));
          });
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
