#include "tests/bench/load/driver.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/target/target.h"
#include "tests/bench/load/caller.h"
#include "tests/bench/load/counts.h"
#include "tests/bench/load/look_ups.h"
#include "tests/bench/load/server_process.h"
#include "tests/bench/load/usage.h"

namespace hone::load {
namespace {

constexpr double kProbesPerSecond = 50;
constexpr absl::Duration kArrival = absl::Minutes(1);  // for all sessions
constexpr char kHandling[] = "hone_synchronize_handling_seconds";
constexpr char kResults[] = "hone_fleet_events_total{event=\"results\"}";
constexpr char kMemory[] = "process_resident_memory_bytes";
constexpr char kQueued[] = "hone_store_queued_writes";

using Processes = std::vector<std::unique_ptr<integration::Process>>;

Processes StartSessions(const LoadOptions& options, const std::string& server) {
  Processes processes;
  int first = 0;
  for (int i = 0; i < options.processes; ++i) {
    const int end = options.sessions * (i + 1) / options.processes;
    processes.push_back(std::make_unique<integration::Process>(std::vector<std::string>{
        "/proc/self/exe", "--serve-sessions", server, "--first", absl::StrCat(first), "--sessions",
        absl::StrCat(end - first), "--slots", absl::StrCat(options.slots), "--connections",
        absl::StrCat(std::max(options.connections / options.processes, 1)), "--rate",
        absl::StrCat(options.rate * (end - first) / options.sessions)}));
    first = end;
  }
  return processes;
}

double CpuOf(const Processes& processes) {
  double seconds = 0;
  for (const auto& process : processes) seconds += CpuSeconds(process->pid());
  return seconds;
}

absl::Status Gather(const Processes& processes, Counts* counts) {
  for (const auto& process : processes) process->Signal(SIGTERM);
  for (const auto& process : processes) {
    if (const int code = process->Wait(); code != 0) {
      return absl::InternalError(
          absl::StrCat("a load process ended with ", code, ": ", process->Errors()));
    }
    HONE_RETURN_IF_ERROR(Counts::AddJson(process->Output(), counts));
  }
  return absl::OkStatus();
}

// Observations during the measured time.
struct Seen {
  Scrape begin, end;
  double seconds = 0;
  double server_cpu = 0, load_cpu = 0, own_cpu = 0;
  std::vector<double> results;  // per second
  std::vector<double> memory;   // bytes
  double most_queued = 0;
};

absl::Status Observe(const LoadOptions& options, const ServerProcess& server,
                     const Processes& sessions, Seen* seen) {
  HONE_ASSIGN_OR_RETURN(seen->begin, server.Metrics());
  const absl::Time begin = absl::Now();
  const double server_cpu = CpuSeconds(server.pid()), load_cpu = CpuOf(sessions),
               own_cpu = CpuSeconds(getpid());
  const std::string calls = absl::StrCat(kHandling, "_count");
  double before = seen->begin.Sum(kResults), calls_before = seen->begin.Sum(calls),
         cpu_before = server_cpu;
  absl::Time last = begin;
  if (options.each_second) {
    std::printf("second,results,calls,server_us_per_result,server_cores,queued_writes,mib\n");
  }
  for (int second = 1; second <= static_cast<int>(options.seconds); ++second) {
    absl::SleepFor(begin + absl::Seconds(second) - absl::Now());
    HONE_ASSIGN_OR_RETURN(seen->end, server.Metrics());
    const absl::Time now = absl::Now();
    const double results = seen->end.Sum(kResults);
    seen->results.push_back((results - before) / absl::ToDoubleSeconds(now - last));
    seen->memory.push_back(seen->end[kMemory]);
    seen->most_queued = std::max(seen->most_queued, seen->end[kQueued]);
    if (options.each_second) {
      const double cpu = CpuSeconds(server.pid()), all_calls = seen->end.Sum(calls);
      std::printf("%d,%.0f,%.0f,%.0f,%.2f,%.0f,%.0f\n", second, results - before,
                  all_calls - calls_before,
                  1e6 * (cpu - cpu_before) / std::max(results - before, 1.0),
                  (cpu - cpu_before) / absl::ToDoubleSeconds(now - last), seen->end[kQueued],
                  seen->memory.back() / (1 << 20));
      cpu_before = cpu;
      calls_before = all_calls;
    }
    before = results;
    last = now;
  }
  if (options.each_second) std::printf("\n");
  seen->seconds = absl::ToDoubleSeconds(last - begin);
  seen->server_cpu = CpuSeconds(server.pid()) - server_cpu;
  seen->load_cpu = CpuOf(sessions) - load_cpu;
  seen->own_cpu = CpuSeconds(getpid()) - own_cpu;
  return absl::OkStatus();
}

double Event(const Seen& seen, const std::string& event) {
  const std::string name = absl::StrCat("hone_fleet_events_total{event=\"", event, "\"}");
  return seen.end[name] - seen.begin[name];
}

void Row(const std::string& what, const std::string& figure) {
  std::printf("| %s | %s |\n", what.c_str(), figure.c_str());
}

std::string Tail(const Spread& spread) {
  return absl::StrFormat("%.2f / %.2f / %.1f ms", spread.QuantileMs(0.5), spread.QuantileMs(0.99),
                         spread.QuantileMs(1));
}

void Print(const LoadOptions& options, const Seen& seen, const Counts& counts,
           const JobSource& jobs, const Caller& probe, const Caller* look_ups) {
  const auto delta = [&](const std::string& name) {
    return seen.end.Sum(name) - seen.begin.Sum(name);
  };
  const auto [least, most] = std::minmax_element(seen.results.begin(), seen.results.end());
  constexpr double kMiB = 1 << 20;
  std::printf("| what | figure |\n|---|---|\n");
  Row("worker sessions, load processes, connections",
      absl::StrFormat("%d, %d, %d", options.sessions, options.processes, options.connections));
  Row("measured time", absl::StrFormat("%.1f s", seen.seconds));
  Row("results a second that jobs got",
      absl::StrFormat("%.0f (offered %.0f)", delta(kResults) / seen.seconds, options.rate));
  Row("of each second, least … most", absl::StrFormat("%.0f … %.0f", *least, *most));
  Row("calls of Synchronize a second",
      absl::StrFormat("%.0f", delta(absl::StrCat(kHandling, "_count")) / seen.seconds));
  Row("handling in the server, p50 / p99 / p99.9",
      absl::StrFormat("%.2f / %.2f / %.2f ms", 1e3 * seen.end.Quantile(seen.begin, kHandling, 0.5),
                      1e3 * seen.end.Quantile(seen.begin, kHandling, 0.99),
                      1e3 * seen.end.Quantile(seen.begin, kHandling, 0.999)));
  Row("an idle worker's call, there and back, p50 / p99 / max", Tail(probe.took()));
  Row("results that workers were told are durable", absl::StrCat(counts.acknowledged.load()));
  Row("from the end of a run to durable at the worker, p50 / p99 / max", Tail(counts.acknowledge));
  Row("writes that waited for the disk, at most", absl::StrFormat("%.0f", seen.most_queued));
  const std::vector<double> later(seen.memory.begin() + seen.memory.size() / 2, seen.memory.end());
  Row("memory of the server, first / last / trend over the second half",
      absl::StrFormat("%.0f / %.0f / %+.1f MiB", seen.memory.front() / kMiB,
                      seen.memory.back() / kMiB, Rise(later) / kMiB));
  Row("cores used: server, load processes, driver",
      absl::StrFormat("%.2f, %.2f, %.2f", seen.server_cpu / seen.seconds,
                      seen.load_cpu / seen.seconds, seen.own_cpu / seen.seconds));
  Row("server time for a result",
      absl::StrFormat("%.0f µs", 1e6 * seen.server_cpu / std::max(delta(kResults), 1.0)));
  Row("jobs created, done, failures",
      absl::StrFormat("%d, %d, %d", jobs.created(), jobs.done(), jobs.failures().size()));
  Row("leases requeued, results that came again, calls failed, workers refused",
      absl::StrFormat("%.0f, %.0f, %d, %d", Event(seen, "requeued"), Event(seen, "refused_results"),
                      counts.failed_calls.load(), counts.refusals.load()));
  Row("artifacts to and from the server, failed",
      absl::StrFormat("%d, %d, %d", counts.uploads.load(), counts.downloads.load(),
                      counts.failed_transfers.load()));
  if (look_ups != nullptr) {
    Row(absl::StrFormat("look-ups of a best, %.0f a second, p50 / p99 / max", options.look_ups),
        Tail(look_ups->took()));
    Row("look-ups that failed", absl::StrCat(look_ups->failed()));
  }
  const std::vector<std::string> failures = jobs.failures();
  for (size_t i = 0; i < std::min<size_t>(failures.size(), 10); ++i) {
    std::fprintf(stderr, "load_benchmark: %s\n", failures[i].c_str());
  }
}

absl::Status Check(const Seen& seen, const Counts& counts, const JobSource& jobs,
                   const Caller& probe, const Caller* look_ups) {
  if (seen.end.Sum(kResults) <= seen.begin.Sum(kResults)) {
    return absl::InternalError("no result came to a job");
  }
  if (const auto failures = jobs.failures(); !failures.empty()) {
    return absl::InternalError(failures.front());
  }
  const int64_t wrong = counts.failed_calls + counts.refusals + counts.failed_transfers +
                        probe.failed() + (look_ups == nullptr ? 0 : look_ups->failed());
  if (wrong == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(wrong, " calls, results or transfers failed"));
}

}  // namespace

absl::Status RunLoad(const LoadOptions& options) {
  const TemporaryFolder folder;
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<ServerProcess> server,
      ServerProcess::Start(options.store.empty() ? folder / "hone.db" : options.store));
  const Processes sessions = StartSessions(options, server->address());
  const auto arrived = [&] {
    const absl::StatusOr<Scrape> now = server->Metrics();
    return now.ok() && (*now)["hone_workers{state=\"connected\"}"] >= options.sessions;
  };
  if (!integration::Eventually(arrived, kArrival)) {
    return absl::DeadlineExceededError(
        absl::StrCat("the sessions did not all come: ", sessions.front()->Errors(), server->Log()));
  }
  HONE_ASSIGN_OR_RETURN(const auto channel, rpc::CreateChannel(server->address(), {}));
  JobSourceOptions job_options = options.jobs;
  job_options.target = target::DetectHost().Key();
  JobSource jobs(channel, job_options);
  HONE_RETURN_IF_ERROR(jobs.Start());
  HONE_ASSIGN_OR_RETURN(const auto probe, StartProbe(server->address(), kProbesPerSecond));
  std::unique_ptr<Caller> look_ups;
  if (options.look_ups > 0) {
    HONE_ASSIGN_OR_RETURN(look_ups,
                          StartLookUps(server->address(), job_options.target, options.look_ups));
  }
  absl::SleepFor(absl::Seconds(options.warm_up));

  probe->Mark();
  if (look_ups != nullptr) look_ups->Mark();
  Seen seen;
  HONE_RETURN_IF_ERROR(Observe(options, *server, sessions, &seen));
  if (look_ups != nullptr) look_ups->Stop();
  probe->Stop();
  jobs.Stop();
  Counts counts;
  HONE_RETURN_IF_ERROR(Gather(sessions, &counts));
  for (const auto& process : sessions) std::fputs(process->Errors().c_str(), stderr);
  Print(options, seen, counts, jobs, *probe, look_ups.get());
  if (const int code = server->Stop(); code != 0) {
    return absl::InternalError(absl::StrCat("hone-server ended with ", code));
  }
  return options.check ? Check(seen, counts, jobs, *probe, look_ups.get()) : absl::OkStatus();
}

}  // namespace hone::load
