// The actions of the faults.

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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
constexpr absl::Duration kAcknowledgeLimit = absl::Seconds(8);

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
      {FaultKind::kKillLeader, &Chaos::KillLeader},
      {FaultKind::kStopLeader, &Chaos::StopLeader},
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
      {FaultKind::kKillStandby, &Chaos::KillStandby},
      {FaultKind::kKillDatabase, &Chaos::KillDatabase},
      {FaultKind::kDemoteDatabase, &Chaos::DemoteDatabase},
      {FaultKind::kPartition, &Chaos::Partition},
      {FaultKind::kSlowQueries, &Chaos::SlowQueries},
  };
  return (this->*actions->at(fault.kind))(fault);
}

void Chaos::KillAndRestart(Member& member, absl::Duration pause) {
  cluster_->Kill(member, pause);
  struck_.back().ended = absl::Now() + pause;
  struck_.back().victim = member.name;
}

bool Chaos::KillLeader(const Fault& fault) {
  Member& leader = cluster_->server();
  if (!leader.process->Running()) return false;
  KillAndRestart(leader, Pause(fault));
  return true;
}

bool Chaos::KillStandby(const Fault& fault) {
  const size_t leader = cluster_->leader();
  for (size_t i = 0; i < cluster_->servers(); ++i) {
    Member& server = cluster_->server(i);
    if (i == leader || !server.process->Running()) continue;
    KillAndRestart(server, Pause(fault));
    return true;
  }
  return false;
}

void Chaos::Stop(Member& member, absl::Duration lasts) {
  member.process->Signal(SIGSTOP);
  struck_.back().victim = member.name;
  EndLater(lasts, [&member] {
    if (member.process->Running()) member.process->Signal(SIGCONT);
  });
}

bool Chaos::StopLeader(const Fault& fault) {
  Member& leader = cluster_->server();
  if (!leader.process->Running()) return false;
  Stop(leader, fault.lasts);
  return true;
}

bool Chaos::KillWorker(const Fault& fault) {
  Member& worker = cluster_->worker(fault.draw % cluster_->workers());
  if (!worker.process->Running()) return false;
  KillAndRestart(worker, Pause(fault));
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
    std::vector<std::pair<pid_t, std::string>> found;  // and the name of its worker
    for (size_t i = 0; i < cluster_->workers(); ++i) {
      const Member& worker = cluster_->worker(i);
      const auto children =
          integration::Descendants(worker.process->pid(), builder ? "hone-builder" : "hone-runner");
      for (const pid_t child : children) {
        // Skips a process that the worker queries at startup, because the worker would fail with
        // it.
        const std::string words = ReadFile(absl::StrCat("/proc/", child, "/cmdline")).value_or("");
        if (!absl::StrContains(words, "--describe")) found.emplace_back(child, worker.name);
      }
    }
    if (!found.empty()) {
      const auto& [victim, worker] = found[fault.draw % found.size()];
      struck_.back().victim = worker;
      struck_.back().ended = absl::Now();
      kill(victim, kills ? SIGKILL : SIGSTOP);
      if (!kills) EndLater(fault.lasts, [pid = victim] { kill(pid, SIGCONT); });
      return true;
    }
    if (absl::Now() >= until) return false;
    Sleep(absl::Milliseconds(20));
  }
}

bool Chaos::SpoilNetwork(const Fault& fault) {
  // Mostly between workers and server, where the promises are made.
  const Network& network = cluster_->network();
  TcpProxy& proxy = fault.draw % 4 == 0 ? *network.clients : *network.workers;
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
  cluster_->network().tap->Trouble(fault.kind, 1 + static_cast<int>((fault.draw >> 8) % kMostCalls),
                                   fault.lasts);
  return true;
}

bool Chaos::FillDisk(const Fault& fault) {
  if (store::PostgresServer* const database = cluster_->database(); database != nullptr) {
    const absl::Status filled = database->FillDisk();
    if (!filled.ok()) {
      report_.skipped =
          absl::StrCat("The disk of the database was never full: ", std::string(filled.message()));
      return false;
    }
    EndLater(fault.lasts, [database] { database->FreeDisk(); });
    return true;
  }
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
  // Mostly the leader's.
  const size_t other = (cluster_->leader() + 1) % cluster_->servers();
  const Member& server = fault.draw % 4 == 0 ? cluster_->server(other) : cluster_->server();
  const Member& member = fault.kind == FaultKind::kServerClockJump
                             ? server
                             : cluster_->worker(fault.draw % cluster_->workers());
  Cluster::ShiftClock(member, shifts[(fault.draw >> 8) % shifts.size()]);
  return true;
}

bool Chaos::RestoreBackup(const Fault&) {
  if (backups_.empty()) return false;
  const Backup& backup = backups_.back();
  Member& server = cluster_->server();
  observer_->Pause();
  KillAndRestart(server, absl::InfiniteDuration());
  const integration::Result restored = integration::RunProgram(
      {"hone-server", "restore", "--store", cluster_->store_place(), "--from", backup.path});
  if (restored.code != 0) {
    broken_backups_.push_back(
        absl::StrCat("restore ended with ", restored.code, ": ", restored.errors));
  }
  std::vector<record::Record> records;
  if (auto store = store::OpenStore(cluster_->store_place()); store.ok()) {
    if (auto all = AllRecords(**store); all.ok()) records = *std::move(all);
  }
  const Ledger::Restoration restoration = ledger_.Restored(backup.promises, records);
  report_.lost_to_restores += restoration.gone;
  broken_backups_.insert(broken_backups_.end(), restoration.broken.begin(),
                         restoration.broken.end());
  observer_->Resume(records.empty() ? 0 : records.back().id);
  server.start_at = absl::Now();
  struck_.back().ended = absl::Now();
  return true;
}

bool Chaos::KillDatabase(const Fault& fault) {
  if (!cluster_->database()->Running()) return false;
  cluster_->KillDatabase(Pause(fault));
  struck_.back().ended = absl::Now() + Pause(fault);
  return true;
}

bool Chaos::DemoteDatabase(const Fault& fault) {
  store::PostgresServer* const database = cluster_->database();
  if (!database->Running()) return false;
  database->Demote();
  EndLater(fault.lasts, [database] { database->Promote(); });
  return true;
}

bool Chaos::Partition(const Fault& fault) {
  TcpProxy& proxy = *cluster_->network().database;
  struck_.back().victim = cluster_->server().name;
  proxy.SetWeather({.black_hole = true});
  EndLater(fault.lasts, [&proxy] { proxy.SetWeather({}); });
  // The kernels of both machines end a connection whose bytes are not acknowledged for so long, but
  // those of the proxy's connections are.
  if (fault.lasts > kAcknowledgeLimit) {
    ends_.emplace(absl::Now() + kAcknowledgeLimit, [&proxy] { proxy.Cut(); });
  }
  return true;
}

bool Chaos::SlowQueries(const Fault& fault) {
  store::PostgresServer* const database = cluster_->database();
  if (!database->Running()) return false;
  if (fault.draw % 2 == 0) {
    // Another session holds a lock that every job needs.
    lock_holders_.push_back(std::make_unique<integration::Process>(integration::With(
        database->Psql(Cluster::kDatabase),
        {"-c",
         absl::StrFormat("BEGIN; SET lock_timeout = '2s'; LOCK TABLE record IN ACCESS EXCLUSIVE "
                         "MODE; SELECT pg_sleep(%.3f); ROLLBACK",
                         absl::ToDoubleSeconds(fault.lasts))})));
    EndLater(fault.lasts, [] {});
    return true;
  }
  const Weather slow{.delay = absl::Milliseconds(20 + (fault.draw >> 8) % 200)};
  for (size_t i = 0; i < cluster_->servers(); ++i) {
    cluster_->network(i).database->SetWeather(slow);
  }
  EndLater(fault.lasts, [this] {
    for (size_t i = 0; i < cluster_->servers(); ++i) {
      cluster_->network(i).database->SetWeather({});
    }
  });
  return true;
}

}  // namespace hone::fault
