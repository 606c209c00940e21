#include "tests/fault/chaos.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "server/store/store.h"

namespace hone::fault {
namespace {

constexpr absl::Duration kStep = absl::Milliseconds(20);
constexpr absl::Duration kBackupInterval = absl::Seconds(8);
constexpr absl::Duration kAdministration = absl::Seconds(1);
constexpr absl::Duration kOrphanLimit = absl::Seconds(10);
constexpr int kMostViolationsSaid = 20;

std::vector<std::vector<std::string>> Shapes(int customer, int trials) {
  const std::vector<std::vector<std::string>> sizes = {
      {"m=32", "n=32", "k=32"}, {"m=48", "n=32", "k=64"}, {"m=64", "n=64", "k=32"}};
  std::vector<std::vector<std::string>> shapes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<std::string>& words = shapes.emplace_back();
    words = {"matmul"};
    const auto& size = sizes[(i + customer) % sizes.size()];
    words.insert(words.end(), size.begin(), size.end());
    words.insert(words.end(), {"--trials", absl::StrCat(trials)});
  }
  return shapes;
}

}  // namespace

int ChaosReport::struck() const {
  int all = 0;
  for (const auto& [kind, count] : faults) all += count.struck;
  return all;
}

int ChaosReport::kinds_struck() const {
  int kinds = 0;
  for (const auto& [kind, count] : faults) kinds += count.struck > 0 ? 1 : 0;
  return kinds;
}

bool ChaosReport::holds() const {
  for (const Verdict& verdict : verdicts) {
    if (!verdict.violations.empty()) return false;
  }
  return true;
}

absl::StatusOr<std::unique_ptr<Chaos>> Chaos::Start(const ChaosOptions& options,
                                                    const std::string& folder) {
  // Orphaned descendants become children of this process, so they are found.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  auto chaos = std::unique_ptr<Chaos>(new Chaos(options));
  chaos->report_.options = options;
  HONE_ASSIGN_OR_RETURN(chaos->cluster_,
                        Cluster::Start(folder, &chaos->ledger_, options.schedule.store));
  HONE_ASSIGN_OR_RETURN(chaos->direct_, OpenDirect(chaos->cluster_->server_address()));
  HONE_ASSIGN_OR_RETURN(chaos->observer_,
                        Observer::Start(chaos->cluster_->server_address(), &chaos->ledger_));
  constexpr int kCustomers = 2;
  for (int i = 0; i < kCustomers; ++i) {
    chaos->customers_.push_back(std::make_unique<Customer>(
        chaos->cluster_->client_address(), Shapes(i, options.trials), 1000 * (i + 1),
        [raw = chaos.get()](const v1::Job& job) { raw->NoteResumption(job); }));
  }
  return chaos;
}

void Chaos::Step() {
  cluster_->Supervise();
  while (!ends_.empty() && ends_.begin()->first <= absl::Now()) {
    const auto end = std::move(ends_.begin()->second);
    ends_.erase(ends_.begin());
    end();
  }
  const bool more = !settling_ && absl::Now() < began_ + options_.last_wish;
  for (const auto& customer : customers_) customer->Step(*direct_, more);
  const bool has_backups = cluster_->database() == nullptr;
  if (has_backups && !settling_ && absl::Now() >= next_backup_) MakeBackup();
  if (absl::Now() >= next_administration_) Administrate();
}

void Chaos::Sleep(absl::Duration duration) {
  const absl::Time until = absl::Now() + duration;
  do {
    Step();
    absl::SleepFor(std::min(kStep, std::max(until - absl::Now(), absl::ZeroDuration())));
  } while (absl::Now() < until);
}

void Chaos::EndLater(absl::Duration after, std::function<void()> end) {
  const size_t index = struck_.size() - 1;
  struck_[index].ended = absl::InfiniteFuture();
  ends_.emplace(absl::Now() + after, [this, index, end = std::move(end)] {
    end();
    struck_[index].ended = absl::Now();
  });
}

void Chaos::MakeBackup() {
  const std::string path = absl::StrCat(cluster_->folder(), "/backup-", backups_.size(), ".db");
  Backup backup{.path = path, .promises = ledger_.Copy()};
  const auto made = direct_->BackupStore(path);
  // A backup that failed because of a fault is repeated.
  next_backup_ = absl::Now() + (made.ok() ? kBackupInterval : absl::Seconds(1));
  if (made.ok()) {
    backups_.push_back(std::move(backup));
  } else {
    unlink(path.c_str());  // the backup may exist although its answer was lost
  }
}

void Chaos::Administrate() {
  next_administration_ = absl::Now() + kAdministration;
  const auto workers = direct_->ListWorkers();
  if (!workers.ok()) return;
  for (const v1::WorkerInfo& worker : *workers) {
    if (!worker.flagged().empty()) {
      if (!direct_->DrainWorker(worker.id(), /*resume=*/true).ok()) continue;  // the next time
      Intervene({Intervention::Kind::kUnflag, absl::Now(), absl::StrCat("worker ", worker.id()),
                 worker.flagged()});
    }
  }
  const auto jobs = direct_->ListJobs(0);
  if (!jobs.ok()) return;
  for (const v1::Job& job : *jobs) {
    if (!client::HasEnded(job.state()) || job.state() == v1::JOB_STATE_DONE) {
      failures_.erase(job.id());
      continue;
    }
    NoteFailure(job);
    // Until the end, its customer resumes it.
    if (settling_ && direct_->ResumeJob(job.id(), 0, 0).ok()) NoteResumption(job);
  }
}

Chaos::Failure& Chaos::NoteFailure(const v1::Job& job) {
  const std::string reason = job.state() != v1::JOB_STATE_FAILED ? "it was cancelled"
                             : job.error().empty()               ? "it gave no reason"
                                                                 : job.error();
  Failure& failure = failures_[job.id()];
  if (failure.reason != reason) failure = {.noticed = absl::Now(), .reason = reason};
  return failure;
}

void Chaos::NoteResumption(const v1::Job& job) {
  Failure& failure = NoteFailure(job);
  if (std::exchange(failure.is_counted, true)) return;  // the first attempt failed
  Intervene({Intervention::Kind::kResume, failure.noticed, absl::StrCat("job ", job.id()),
             failure.reason});
}

void Chaos::Intervene(Intervention intervention) {
  if (options_.talk) {
    std::fprintf(stderr, "%7.2f s  intervention: %s: %s\n",
                 absl::ToDoubleSeconds(absl::Now() - began_), intervention.whom.c_str(),
                 intervention.reason.c_str());
  }
  interventions_.push_back(std::move(intervention));
}

bool Chaos::AllJobsEnded() {
  const auto jobs = direct_->ListJobs(0);
  if (!jobs.ok()) return false;
  for (const v1::Job& job : *jobs) {
    if (job.state() != v1::JOB_STATE_DONE) return false;
  }
  return true;
}

void Chaos::Settle() {
  settling_ = true;
  while (!ends_.empty()) Sleep(kStep);
  const absl::Time healed = absl::Now();
  cluster_->CalmNetworks();
  absl::Time asked;
  while (absl::Now() < healed + options_.settle) {
    Sleep(kStep);
    bool content = true;
    for (const auto& customer : customers_) content = content && customer->content();
    if (!content || absl::Now() < asked + absl::Milliseconds(200)) continue;
    asked = absl::Now();
    if (AllJobsEnded()) break;
  }
  report_.settled = absl::Now() - healed;
}

ChaosReport Chaos::Run() {
  began_ = absl::Now();
  for (const Fault& fault : MakeSchedule(options_.schedule)) {
    Sleep(began_ + fault.at - absl::Now());
    struck_.push_back({.kind = fault.kind, .began = absl::Now(), .ended = absl::Now()});
    const bool struck = Strike(fault);
    if (!struck) struck_.pop_back();
    if (options_.talk) {
      std::fprintf(stderr, "%7.2f s  %s%s\n", absl::ToDoubleSeconds(absl::Now() - began_),
                   std::string(InfoOf(fault.kind).name).c_str(),
                   struck ? "" : ": nothing to strike");
    }
    ++(struck ? report_.faults[fault.kind].struck : report_.faults[fault.kind].missed);
  }
  Sleep(began_ + options_.schedule.length - absl::Now());
  Settle();
  Judge();
  report_.took = absl::Now() - began_;
  return std::move(report_);
}

void Chaos::Judge() {
  Verdict customers{.what = "every customer got its kernels, and no command failed in silence"};
  for (const auto& customer : customers_) {
    ++customers.looked_at;
    if (!customer->content()) customers.violations.push_back("waits for " + customer->wish());
    for (const std::string& silent : customer->silent()) customers.violations.push_back(silent);
    report_.jobs_done += customer->done();
    report_.commands_interrupted += customer->interrupted();
  }
  // The server's answers, by workload digest.
  std::map<std::string, v1::Best> served;
  if (const auto jobs = direct_->ListJobs(0); jobs.ok()) {
    for (const v1::Job& job : *jobs) {
      if (served.contains(job.workload_digest())) continue;
      const auto best = direct_->LookupBest(job.workload(), job.target(), 0, /*nearest=*/false);
      if (best.ok()) served[job.workload_digest()] = *best;
    }
  }
  for (size_t i = 0; i < cluster_->servers(); ++i) {
    report_.troubled_calls += cluster_->network(i).tap->troubled();
  }
  observer_.reset();
  customers_.clear();
  direct_.reset();
  lock_holders_.clear();
  cluster_->Shutdown();
  interventions_.insert(interventions_.end(), cluster_->restarts().begin(),
                        cluster_->restarts().end());
  Verdict programs{.what = "no program ended by itself, and each ends when it is asked to",
                   .violations = cluster_->surprises()};
  programs.looked_at = static_cast<int64_t>(cluster_->servers() + cluster_->workers());
  for (size_t i = 0; i < cluster_->servers(); ++i) report_.starts += cluster_->server(i).starts;
  for (size_t i = 0; i < cluster_->workers(); ++i) report_.starts += cluster_->worker(i).starts;
  Verdict opens{.what = "the store opens and is read", .looked_at = 1};
  if (const absl::Status read = JudgeStore(served); !read.ok()) {
    opens.violations.push_back(std::string(read.message()));
  }
  cluster_->EndDatabase();
  Verdict orphans{.what = "no process is left behind", .looked_at = 1};
  const auto left = [] { return integration::Descendants(getpid()); };
  if (!integration::Eventually([&] { return left().empty(); }, kOrphanLimit)) {
    orphans.violations.push_back(absl::StrCat("processes ", absl::StrJoin(left(), ", ")));
  }
  for (Verdict& verdict : std::vector{opens, customers, programs, orphans,
                                      CheckInterventions(interventions_, struck_, began_)}) {
    report_.verdicts.push_back(std::move(verdict));
  }
  if (options_.schedule.store == StoreKind::kSqlite) {
    report_.verdicts.push_back({.what = "a backup holds every record that was shown before it",
                                .looked_at = report_.faults[FaultKind::kRestoreBackup].struck,
                                .violations = broken_backups_,
                                .note = absl::StrCat(report_.lost_to_restores,
                                                     " promises made after the backup went with "
                                                     "the store")});
  }
  for (Verdict& verdict : report_.verdicts) {
    if (verdict.violations.size() > kMostViolationsSaid) {
      verdict.violations.resize(kMostViolationsSaid);
      verdict.violations.push_back("…");
    }
  }
}

absl::Status Chaos::JudgeStore(const std::map<std::string, v1::Best>& served) {
  HONE_ASSIGN_OR_RETURN(const auto store, store::OpenStore(cluster_->store_place()));
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> records, AllRecords(*store));
  report_.verdicts = {CheckAcknowledged(records, ledger_.acknowledged()),
                      CheckShown(records, ledger_.shown()), CheckOnce(records), CheckJobs(*store),
                      CheckBests(*store, records, served)};
  if (cluster_->database() == nullptr) {
    report_.verdicts.push_back(CheckIntegrity(*store));
    return absl::OkStatus();
  }
  // A store on PostgreSQL leaves the check to the database.
  Verdict sound{.what = "the store is sound", .looked_at = 1};
  const absl::Status checked = cluster_->database()->Check(Cluster::kDatabase);
  sound.note = absl::IsNotFound(checked) ? std::string(checked.message())
                                         : absl::StrCat(store->Health().size_bytes, " bytes");
  if (!checked.ok() && !absl::IsNotFound(checked)) {
    sound.violations.push_back(std::string(checked.message()));
  }
  report_.verdicts.push_back(std::move(sound));
  return absl::OkStatus();
}

absl::StatusOr<ChaosReport> RunChaos(const ChaosOptions& options, const std::string& folder) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Chaos> chaos, Chaos::Start(options, folder));
  return chaos->Run();
}

}  // namespace hone::fault
