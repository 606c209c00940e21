// The actions of the faults.

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "server/store/store.h"
#include "tests/fault/chaos.h"

namespace hone::fault {
namespace {

constexpr absl::Duration kShortestPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestPause = absl::Milliseconds(800);
constexpr absl::Duration kLookForVictim = absl::Milliseconds(1500);
constexpr rlim_t kFullDiskBytes = 4096;

// How long a killed program stays down.
absl::Duration Pause(const Fault& fault) {
  return kShortestPause + (kLongestPause - kShortestPause) * ((fault.draw >> 32) % 1000) / 1000;
}

void LimitFiles(pid_t pid, rlim_t bytes) {
  rlimit limit;
  if (prlimit(pid, RLIMIT_FSIZE, nullptr, &limit) != 0) return;
  limit.rlim_cur = std::min(bytes, limit.rlim_max);
  prlimit(pid, RLIMIT_FSIZE, &limit, nullptr);
}

}  // namespace

bool Chaos::Strike(const Fault& fault) {
  using Action = bool (Chaos::*)(const Fault&);
  static const auto* const actions = new std::map<FaultKind, Action>{
      {FaultKind::kKillServer, &Chaos::KillServer},
      {FaultKind::kStopServer, &Chaos::StopServer},
      {FaultKind::kKillWorker, &Chaos::KillWorker},
      {FaultKind::kStopWorker, &Chaos::StopWorker},
      {FaultKind::kKillBuilder, &Chaos::SignalChild},
      {FaultKind::kStopBuilder, &Chaos::SignalChild},
      {FaultKind::kKillRunner, &Chaos::SignalChild},
      {FaultKind::kStopRunner, &Chaos::SignalChild},
      {FaultKind::kKillClient, &Chaos::KillClient},
      {FaultKind::kCutConnections, &Chaos::SpoilNetwork},
      {FaultKind::kDelayBytes, &Chaos::SpoilNetwork},
      {FaultKind::kBlackHole, &Chaos::SpoilNetwork},
      {FaultKind::kSwallowReplies, &Chaos::SpoilNetwork},
      {FaultKind::kDropRequest, &Chaos::SpoilMessages},
      {FaultKind::kDropReply, &Chaos::SpoilMessages},
      {FaultKind::kDelayRequest, &Chaos::SpoilMessages},
      {FaultKind::kDuplicateRequest, &Chaos::SpoilMessages},
      {FaultKind::kReplayResults, &Chaos::SpoilMessages},
      {FaultKind::kBreakTransfer, &Chaos::SpoilMessages},
      {FaultKind::kFullDisk, &Chaos::FillDisk},
      {FaultKind::kServerClockJump, &Chaos::JumpClock},
      {FaultKind::kWorkerClockJump, &Chaos::JumpClock},
      {FaultKind::kRestoreBackup, &Chaos::RestoreBackup},
  };
  return (this->*actions->at(fault.kind))(fault);
}

bool Chaos::KillServer(const Fault& fault) {
  if (!cluster_->server().process->Running()) return false;
  cluster_->Kill(cluster_->server(), Pause(fault));
  return true;
}

void Chaos::Stop(Member& member, absl::Duration lasts) {
  member.process->Signal(SIGSTOP);
  EndLater(lasts, [&member] {
    if (member.process->Running()) member.process->Signal(SIGCONT);
  });
}

bool Chaos::StopServer(const Fault& fault) {
  if (!cluster_->server().process->Running()) return false;
  Stop(cluster_->server(), fault.lasts);
  return true;
}

bool Chaos::KillWorker(const Fault& fault) {
  Member& worker = cluster_->worker(fault.draw % cluster_->workers());
  if (!worker.process->Running()) return false;
  cluster_->Kill(worker, Pause(fault));
  return true;
}

bool Chaos::StopWorker(const Fault& fault) {
  Member& worker = cluster_->worker(fault.draw % cluster_->workers());
  if (!worker.process->Running()) return false;
  Stop(worker, fault.lasts);
  return true;
}

bool Chaos::KillClient(const Fault& fault) {
  std::vector<Customer*> busy;
  for (const auto& customer : customers_) {
    if (customer->process() != nullptr && customer->process()->Running()) {
      busy.push_back(customer.get());
    }
  }
  if (busy.empty()) return false;
  busy[fault.draw % busy.size()]->process()->Signal(SIGKILL);
  return true;
}

bool Chaos::SignalChild(const Fault& fault) {
  const bool builder =
      fault.kind == FaultKind::kKillBuilder || fault.kind == FaultKind::kStopBuilder;
  const bool kills = fault.kind == FaultKind::kKillBuilder || fault.kind == FaultKind::kKillRunner;
  // The processes come and go, so wait a moment for one.
  const absl::Time until = absl::Now() + kLookForVictim;
  for (;;) {
    std::vector<pid_t> found;
    for (size_t i = 0; i < cluster_->workers(); ++i) {
      const auto children =
          Descendants(cluster_->worker(i).process->pid(), builder ? "hone-builder" : "hone-runner");
      for (const pid_t child : children) {
        // Skips a process that the worker queries at startup, because the worker would fail with
        // it.
        const std::string words = ReadFile(absl::StrCat("/proc/", child, "/cmdline")).value_or("");
        if (!absl::StrContains(words, "--describe")) found.push_back(child);
      }
    }
    if (!found.empty()) {
      const pid_t victim = found[fault.draw % found.size()];
      kill(victim, kills ? SIGKILL : SIGSTOP);
      if (!kills) EndLater(fault.lasts, [victim] { kill(victim, SIGCONT); });
      return true;
    }
    if (absl::Now() >= until) return false;
    Sleep(absl::Milliseconds(20));
  }
}

bool Chaos::SpoilNetwork(const Fault& fault) {
  // Mostly between workers and server, where the promises are made.
  TcpProxy& proxy = fault.draw % 4 == 0 ? cluster_->client_proxy() : cluster_->worker_proxy();
  if (fault.kind == FaultKind::kCutConnections) {
    proxy.Cut();
    return true;
  }
  Weather weather;
  weather.black_hole = fault.kind == FaultKind::kBlackHole;
  weather.swallow_replies = fault.kind == FaultKind::kSwallowReplies;
  if (fault.kind == FaultKind::kDelayBytes) {
    weather.delay = absl::Milliseconds(10 + (fault.draw >> 8) % 200);
  }
  proxy.SetWeather(weather);
  const bool cuts = (fault.draw >> 16) % 2 == 0;
  EndLater(fault.lasts, [&proxy, cuts] {
    proxy.SetWeather({});
    if (cuts) proxy.Cut();
  });
  return true;
}

bool Chaos::SpoilMessages(const Fault& fault) {
  constexpr int kMostCalls = 4;
  cluster_->tap().Trouble(fault.kind, 1 + static_cast<int>((fault.draw >> 8) % kMostCalls),
                          fault.lasts);
  return true;
}

bool Chaos::FillDisk(const Fault& fault) {
  Member& server = cluster_->server();
  if (!server.process->Running()) return false;
  const pid_t pid = server.process->pid();
  LimitFiles(pid, kFullDiskBytes);
  EndLater(fault.lasts, [&server, pid] {
    // A server that has been restarted since has no limit.
    if (server.process->Running() && server.process->pid() == pid) LimitFiles(pid, RLIM_INFINITY);
  });
  return true;
}

bool Chaos::JumpClock(const Fault& fault) {
  const std::vector<absl::Duration> shifts = {-absl::Hours(24),   -absl::Hours(1),
                                              -absl::Seconds(30), absl::Seconds(30),
                                              absl::Hours(1),     absl::Hours(24)};
  const Member& member = fault.kind == FaultKind::kServerClockJump
                             ? cluster_->server()
                             : cluster_->worker(fault.draw % cluster_->workers());
  Cluster::ShiftClock(member, shifts[(fault.draw >> 8) % shifts.size()]);
  return true;
}

bool Chaos::RestoreBackup(const Fault&) {
  if (backups_.empty()) return false;
  const Backup& backup = backups_.back();
  Member& server = cluster_->server();
  observer_->Pause();
  cluster_->Kill(server, absl::InfiniteDuration());
  const integration::Result restored = integration::RunProgram(
      {"hone-server", "restore", "--store", cluster_->store(), "--from", backup.path});
  if (restored.code != 0) {
    broken_backups_.push_back(
        absl::StrCat("restore ended with ", restored.code, ": ", restored.errors));
  }
  std::vector<record::Record> records;
  if (auto store = store::OpenStore(cluster_->store()); store.ok()) {
    if (auto all = AllRecords(**store); all.ok()) records = *std::move(all);
  }
  const Ledger::Restoration restoration = ledger_.Restored(backup.promises, records);
  report_.lost_to_restores += restoration.gone;
  broken_backups_.insert(broken_backups_.end(), restoration.broken.begin(),
                         restoration.broken.end());
  observer_->Resume(records.empty() ? 0 : records.back().id);
  server.start_at = absl::Now();
  return true;
}

}  // namespace hone::fault
