// Time and memory of learning from a large store.
//   build/release/bench/store_learning_benchmark STORE [RECORDS [SAMPLE...]]
// STORE is a SQLite file that is created and filled with RECORDS trials (default 200,000) of 40
// matrix products with synthetic latencies, and reused if it exists. Then the draft is learned from
// a sample of each SAMPLE records (default 8000 and all), in a process of its own each, so that the
// memory of one is not that of another. Asserts nothing.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/rng.h"
#include "common/operator/operator.h"
#include "common/target/target.h"
#include "server/job/actor/compiler_environment.h"
#include "server/job/actor/job_codec.h"
#include "server/job/search/model_work.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"

namespace hone {
namespace {

constexpr int kTasks = 40;
constexpr int kBatch = 200;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "store_learning_benchmark: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Check(absl::StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

// Appends the trials of one task, which all have different candidates.
void Fill(store::Store& store, const job::TaskEnvironment& environment,
          const target::Target& target, int task, int64_t trials) {
  const ir::Workload workload =
      Check(op::BuildWorkload("matmul", {absl::StrCat("m=", 256 + 32 * (task % 8)),
                                         absl::StrCat("n=", 384 + 64 * task), "k=512"}));
  const std::string digest = workload.StructuralDigest().ToHex(), job = absl::StrCat(task + 1);
  Check(store::PutText(store, digest, workload.ToText()));
  const auto spaces = Check(environment.Open(workload.ToText(), target.ToText(), "", 0));
  for (const job::SpaceInfo& space : spaces->spaces())
    Check(store::PutText(store, space.digest, space.text));
  store.PutJob(
      {.id = job,
       .request = job::EncodeSpec(
           {.workload = workload.ToText(), .target_key = target.Key(), .target = target.ToText()}),
       .state = "done"},
      [](const absl::Status& put) { Check(put); });
  const auto strategy = Check(spaces->CreateStrategy("random", /*seed=*/1, /*quick_start=*/false));
  Rng rng(7, task);
  for (int64_t done = 0; done < trials;) {
    const auto candidates =
        Check(strategy->Propose(kBatch, static_cast<uint64_t>(done), /*model=*/nullptr));
    if (candidates.empty()) break;
    for (const record::Candidate& candidate : candidates) {
      record::Record record = store::ScreenedRecord(1e6 * std::exp(3 * rng.Uniform()));
      record.workload_digest = digest;
      record.op = "matmul";
      record.target = target.Key();
      record.tolerance = 0;
      record.candidate = candidate;
      record.trial = done++;
      record.job_id = job;
      store.Append(record, [](const absl::StatusOr<record::Record>& put) { Check(put.status()); });
    }
    Check(store.Flush());
  }
}

double PeakMib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Reads, extracts and learns, as server/job/search/model_work.cc does, and prints each step.
void Learn(const std::string& path, int64_t sample) {
  const auto store = Check(store::OpenSqliteStore(path));
  const auto environment = job::MakeCompilerEnvironment(1);
  const auto proceed = [] { return absl::OkStatus(); };
  absl::Time begin = absl::Now();
  const auto step = [&](const char* what, int64_t count) {
    std::printf("%-28s %8lld   %7.1f s   peak %6.0f MiB\n", what, static_cast<long long>(count),
                absl::ToDoubleSeconds(absl::Now() - begin), PeakMib());
    std::fflush(stdout);
    begin = absl::Now();
  };
  step("start", 0);
  job::RecordedTasks recorded =
      Check(job::ReadRecordedTasks(*store, {.max_records = sample}, proceed));
  step("read all records", recorded.records);
  job::LabelledRows material;
  for (size_t t = 0; t < recorded.tasks.size(); ++t) {
    const auto rows =
        Check(job::ExtractRows(*environment, *store, {&recorded.tasks[t], 1}, "residual", proceed));
    recorded.tasks[t].candidates = {};
    for (int i = 0; i < rows[0].candidates(); ++i)
      material.Add(rows[0], static_cast<int32_t>(t), i);
  }
  step("features of the sample", material.features.candidates());
  const auto model = Check(environment->CreateModel("residual", {}));
  Check(model->Update(material.features, material.labels()));
  step("learned", material.features.candidates());
}

int Main(const std::string& path, int64_t records, const std::vector<int64_t>& samples) {
  const auto apart = [](const std::function<void()>& work) {
    const pid_t child = fork();
    if (child == 0) {
      work();
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) std::exit(1);
  };
  if (access(path.c_str(), F_OK) != 0) {
    apart([&] {
      const auto store = Check(store::OpenSqliteStore(path));
      const auto environment = job::MakeCompilerEnvironment(2);
      const target::Target target = target::DetectHost();
      for (int task = 0; task < kTasks; ++task)
        Fill(*store, *environment, target, task, records / kTasks);
    });
  }
  for (const int64_t sample : samples) apart([&] { Learn(path, sample); });
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  int64_t records = 200'000;
  std::vector<int64_t> samples;
  if (argc < 2 || (argc > 2 && !absl::SimpleAtoi(argv[2], &records))) {
    std::fprintf(stderr, "usage: store_learning_benchmark STORE [RECORDS [SAMPLE...]]\n");
    return 2;
  }
  for (int i = 3; i < argc; ++i) {
    if (!absl::SimpleAtoi(argv[i], &samples.emplace_back()) || samples.back() < 1) return 2;
  }
  if (samples.empty()) samples = {8000, records};
  return hone::Main(argv[1], records, samples);
}
