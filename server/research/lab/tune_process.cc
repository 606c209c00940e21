#include "server/research/lab/tune_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/median.h"
#include "common/base/program.h"
#include "common/base/status_macros.h"

namespace hone::lab {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr double kLongGap = 4;  // times the median

}  // namespace

absl::StatusOr<std::string> RunTune(const TuneProcess& process) {
  ProgramRun run{.words = {process.program_folder + "/hone", "tune"},
                 .environment = {{"XDG_DATA_HOME", process.data_folder}}};
  run.words.insert(run.words.end(), process.words.begin(), process.words.end());
  run.words.push_back("--json");
  size_t passed_on = 0;
  bool interrupted = false;
  run.on_errors = [&](pid_t pid, absl::string_view errors) {
    fwrite(errors.data() + passed_on, 1, errors.size() - passed_on, stderr);
    passed_on = errors.size();
    if (interrupted || process.interrupt_at.empty() ||
        !absl::StrContains(errors, process.interrupt_at)) {
      return;
    }
    interrupted = true;
    kill(pid, SIGINT);
    usleep(50000);  // two signals in quick succession would count as one
    kill(pid, SIGINT);
  };
  HONE_ASSIGN_OR_RETURN(const ProgramResult result, RunProgram(run));
  if (interrupted || result.ok()) return result.output;
  const int status = result.wait_status;
  return absl::AbortedError(absl::StrCat(absl::StrJoin(run.words, " "), ": ",
                                         WIFEXITED(status)
                                             ? absl::StrCat("exit code ", WEXITSTATUS(status))
                                             : absl::StrCat("ended by signal ", WTERMSIG(status))));
}

absl::StatusOr<std::unique_ptr<store::Store>> OpenStoreOfEndedServer(const std::string& path) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (true) {
    absl::StatusOr<std::unique_ptr<store::Store>> opened = store::OpenSqliteStore(path);
    if (opened.ok() || !absl::IsUnavailable(opened.status()) || absl::Now() > deadline) {
      return opened;
    }
    absl::SleepFor(absl::Milliseconds(50));
  }
}

absl::StatusOr<std::vector<StoreResult>> ReadStoreResults(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStoreOfEndedServer(path));
  std::vector<StoreResult> results;
  std::map<std::string, int64_t> last;     // per job: time of its last result
  std::map<std::string, int64_t> created;  // per job; 0: not in the store
  std::vector<double> gaps;
  store::RecordQuery query{.page_size = 1000};
  while (true) {
    HONE_ASSIGN_OR_RETURN(std::vector<record::Record> page, store->Query(query));
    for (record::Record& record : page) {
      query.after_id = record.id;
      if (record.policy.name != "screen") continue;
      const auto [previous, first] = last.emplace(record.job_id, record.created_unix_ms);
      const double gap = first ? 0 : static_cast<double>(record.created_unix_ms - previous->second);
      previous->second = record.created_unix_ms;
      if (record.is_default) continue;
      gaps.push_back(gap);
      const auto [begin, unknown] = created.try_emplace(record.job_id, 0);
      if (unknown) {
        const absl::StatusOr<store::JobRow> job = store->GetJob(record.job_id);
        if (job.ok()) begin->second = job->created_unix_ms;
      }
      const double elapsed =
          begin->second == 0 ? 0 : static_cast<double>(record.created_unix_ms - begin->second);
      results.push_back({std::move(record), gap, elapsed});
    }
    if (static_cast<int>(page.size()) < query.page_size) break;
  }
  const double longest = gaps.empty() ? 0 : kLongGap * Median(gaps);
  for (StoreResult& result : results) result.run_ms = std::min(result.run_ms, longest);
  return results;
}

absl::StatusOr<double> ReadPublishedLatencyNs(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStoreOfEndedServer(path));
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> any, store->Query({.page_size = 1}));
  if (any.empty()) return 0;
  const absl::StatusOr<store::BestRow> best =
      store->LookupBest({.workload_digest = any[0].workload_digest,
                         .target = any[0].target,
                         .tolerance = any[0].tolerance});
  if (absl::IsNotFound(best.status())) return 0;
  if (!best.ok()) return best.status();
  return best->record.result.latency_ns;
}

}  // namespace hone::lab
