#include "server/fleet/worker_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hone::fleet {
namespace {

constexpr size_t kMaxEpochs = 16;

// Returns the instruction set, which is the beginning of a target key.
absl::string_view InstructionSet(absl::string_view target_key) {
  return target_key.substr(0, target_key.find('-'));
}

}  // namespace

std::string ResumeCommand(const std::string& id) {
  return absl::StrCat("\"hone workers resume ", id, "\"");
}

std::string HowToResume(const std::string& id) {
  return absl::StrCat("an administrator gives it work again with ", ResumeCommand(id));
}

Standing Standings::Of(const std::string& id) const { return Of(id, IdentityOf(id)); }

Standing Standings::Of(const std::string& id, const std::string& identity) const {
  absl::MutexLock lock(&mutex_);
  Standing standing = Get(id);
  const std::string other = RefusedName(identity);
  if (!standing.refused.empty() || other.empty()) return standing;
  const Standing& refusal = known_.at(other);
  standing.refused = absl::StrCat("it is the worker ", other, ": ", refusal.refused);
  standing.removed = refusal.removed;
  standing.identity = identity;
  return standing;
}

Standing Standings::Own(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return Get(id);
}

std::string Standings::RefusedAs(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return Get(id).refused.empty() ? RefusedName(Identity(id)) : "";
}

bool Standings::MayWork(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return !known_.contains(id) && (refused_.empty() || RefusedName(Identity(id)).empty());
}

void Standings::Identify(const std::string& id, const std::string& identity) {
  absl::MutexLock lock(&mutex_);
  if (identity.empty()) {
    identities_.erase(id);
  } else {
    identities_[id] = identity;
  }
}

std::string Standings::IdentityOf(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return Identity(id);
}

std::string Standings::Identity(const std::string& id) const {
  const auto found = identities_.find(id);
  return found == identities_.end() ? "" : found->second;
}

std::string Standings::RefusedName(const std::string& identity) const {
  if (identity.empty() || refused_.empty()) return "";
  const auto found = refused_.find(identity);
  return found == refused_.end() ? "" : *found->second.begin();
}

std::vector<std::string> Standings::NamesOf(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  const std::string own = Get(id).identity;
  const std::string identity = own.empty() ? Identity(id) : own;
  std::vector<std::string> names = {id};
  for (const auto& [name, other] : identities_) {
    if (name != id && other == identity) names.push_back(name);
  }
  return names;
}

bool Standings::IsOneOf(const std::string& id, const std::vector<std::string>& others) const {
  if (others.empty()) return false;
  absl::MutexLock lock(&mutex_);
  const std::string identity = Identity(id);
  return std::any_of(others.begin(), others.end(), [&](const std::string& other) {
    return other == id || (!identity.empty() && Identity(other) == identity);
  });
}

std::map<std::string, Standing> Standings::all() const {
  absl::MutexLock lock(&mutex_);
  return known_;
}

int64_t Standings::refused_count() const {
  absl::MutexLock lock(&mutex_);
  return std::count_if(known_.begin(), known_.end(),
                       [](const auto& entry) { return !entry.second.refused.empty(); });
}

Standing Standings::Get(const std::string& id) const {
  auto found = known_.find(id);
  return found == known_.end() ? Standing{.worker_id = id} : found->second;
}

void Standings::Set(const Standing& standing) {
  const std::string& id = standing.worker_id;
  const std::string before = Get(id).identity;
  if (const auto names = refused_.find(before); names != refused_.end()) {
    names->second.erase(id);
    if (names->second.empty()) refused_.erase(names);
  }
  if (!standing.drained && standing.refused.empty()) {
    known_.erase(id);
    return;
  }
  known_[id] = standing;
  if (standing.refused.empty()) known_[id].identity.clear();
  if (const std::string& identity = known_[id].identity; !identity.empty()) {
    refused_[identity].insert(id);
  }
}

void Standings::Change(const Standing& standing) {
  absl::MutexLock lock(&mutex_);
  Set(standing);
  pending_[standing.worker_id] = ++changes_;
}

std::optional<UnstoredStanding> Standings::Unstored(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  auto found = pending_.find(id);
  if (found == pending_.end()) return std::nullopt;
  return UnstoredStanding{Get(id), found->second};
}

void Standings::MarkStored(const UnstoredStanding& stored) {
  absl::MutexLock lock(&mutex_);
  auto found = pending_.find(stored.standing.worker_id);
  if (found != pending_.end() && found->second == stored.number) pending_.erase(found);
}

void Standings::Adopt(const std::vector<Standing>& stored) {
  absl::MutexLock lock(&mutex_);
  for (const Standing& standing : stored) Set(standing);
}

bool Capabilities::BuildsFor(absl::string_view key) const {
  if (!can_build) return false;
  const absl::string_view wanted = InstructionSet(key);
  if (build_isas.empty()) return InstructionSet(target_key) == wanted;
  return std::find(build_isas.begin(), build_isas.end(), wanted) != build_isas.end();
}

Worker* WorkerRegistry::Find(const std::string& id) {
  auto found = workers_.find(id);
  return found == workers_.end() ? nullptr : &found->second;
}

const Worker* WorkerRegistry::Find(const std::string& id) const {
  auto found = workers_.find(id);
  return found == workers_.end() ? nullptr : &found->second;
}

Worker& WorkerRegistry::Add(const std::string& id) {
  Worker& worker = workers_[id];
  worker.id = id;
  return worker;
}

void WorkerRegistry::Erase(const std::string& id) {
  auto found = workers_.find(id);
  RemoveFromTarget(found->second);
  workers_.erase(found);
  standings_->Identify(id, "");
}

void WorkerRegistry::RemoveFromTarget(const Worker& worker) {
  auto peers = by_target_.find(worker.capabilities.target_key);
  if (peers != by_target_.end() && peers->second.erase(worker.id) > 0 && peers->second.empty()) {
    by_target_.erase(peers);
  }
}

void WorkerRegistry::SetCapabilities(Worker& worker, Capabilities capabilities) {
  RemoveFromTarget(worker);
  by_target_[capabilities.target_key].insert(worker.id);
  worker.capabilities = std::move(capabilities);
}

std::optional<TurnedAway> WorkerRegistry::WhyTurnedAway(const WorkerReport& report, int64_t most,
                                                        Presence presence, absl::Time now) {
  const std::string identity = IdentityOf(report);
  const Standing standing = standings_->Of(report.worker_id, identity);
  if (standing.removed) {
    return TurnedAway{.why = standing.refused, .again = TurnedAway::Again::kSoon};
  }
  Worker* worker = Find(report.worker_id);
  if (worker == nullptr) {
    if (size() < most) return std::nullopt;
    return TurnedAway{absl::StrCat(size(), size() == 1 ? " worker is" : " workers are",
                                   " registered, which is the limit of this server")};
  }
  // A name stays with its credentials until the worker is forgotten, and with its host while the
  // worker calls.
  const bool is_same = worker->identity == report.identity;
  const bool is_owned = worker->connected || !worker->identity.empty();
  const std::string owner = standings_->IdentityOf(report.worker_id);
  const bool moves =
      is_same && owner != identity && worker->connected && presence != Presence::kGone;
  if ((is_owned && !is_same) || moves) {
    return TurnedAway{absl::StrCat("the name ", report.worker_id, " belongs to ",
                                   worker->identity.empty() ? "a worker without credentials"
                                   : moves                  ? absl::StrCat("'", owner, "'")
                                           : absl::StrCat("'", worker->identity, "'"),
                                   "; give this worker a name of its own")};
  }
  if (!worker->connected) return std::nullopt;
  if (worker->epoch == report.epoch || presence == Presence::kGone) return std::nullopt;
  const auto place = [&](const std::string& epoch) {
    return std::find(worker->epochs.begin(), worker->epochs.end(), epoch);
  };
  if (place(report.epoch) < place(worker->epoch)) {
    if (std::exchange(worker->claim, report.epoch) == report.epoch) return std::nullopt;
    return TurnedAway{.why = absl::StrCat("another process has registered as ", report.worker_id),
                      .again = TurnedAway::Again::kNow};
  }
  const bool known = place(report.epoch) != worker->epochs.end();
  if (!known && presence != Presence::kCalling) return std::nullopt;
  if (!known) NoteEpoch(*worker, report.epoch);
  NoteRival(*worker, report.capabilities.host, now);
  return TurnedAway{
      .why = absl::StrCat("another process on ", worker->capabilities.host, " is registered as ",
                          report.worker_id,
                          "; give each worker a name of its own (--name), or stop this one: it "
                          "only waits for the end of the other"),
      .again = TurnedAway::Again::kSoon};
}

void WorkerRegistry::NoteEpoch(Worker& worker, const std::string& epoch) {
  auto& epochs = worker.epochs;
  if (std::find(epochs.begin(), epochs.end(), epoch) != epochs.end()) return;
  epochs.push_back(epoch);
  if (epochs.size() <= kMaxEpochs) return;
  epochs.erase(epochs.front() == worker.epoch ? epochs.begin() + 1 : epochs.begin());
}

void WorkerRegistry::NoteRival(Worker& worker, const std::string& host, absl::Time now) {
  worker.rival = absl::StrCat("another process, on ", host, ", uses the name ", worker.id,
                              " and gets no work: give it a name of its own (--name)");
  worker.rival_seen = now;
}

bool WorkerRegistry::Update(Worker& worker, WorkerReport& report, absl::Time now) {
  if (worker.epoch != report.epoch) {
    // The worker had lost its name to a process that came later.
    if (worker.claim == report.epoch && !worker.leaving) {
      NoteRival(worker, worker.capabilities.host, now);
    }
    worker.claim.clear();
    worker.epoch = report.epoch;
    NoteEpoch(worker, worker.epoch);
    worker.identity = report.identity;
    standings_->Identify(worker.id, IdentityOf(report));
    worker.news.standing_told = standings_->MayWork(worker.id);
  }
  const bool is_new = !worker.connected ||
                      worker.capabilities.can_run != report.capabilities.can_run ||
                      worker.capabilities.target_key != report.capabilities.target_key;
  SetCapabilities(worker, std::move(report.capabilities));
  worker.connected = true;
  worker.leaving = report.draining;
  worker.last_seen = now;
  return is_new;
}

std::vector<const Worker*> WorkerRegistry::OfTarget(const std::string& target_key) const {
  std::vector<const Worker*> workers;
  auto found = by_target_.find(target_key);
  if (found == by_target_.end()) return workers;
  for (const std::string& id : found->second) workers.push_back(&workers_.at(id));
  return workers;
}

std::set<std::string> WorkerRegistry::Targets() const {
  std::set<std::string> targets;
  for (const auto& [key, ids] : by_target_) {
    for (const std::string& id : ids) {
      if (!workers_.at(id).capabilities.can_run) continue;
      targets.insert(key);
      break;
    }
  }
  return targets;
}

bool WorkerRegistry::HasRunner(const std::string& target_key) const {
  auto found = by_target_.find(target_key);
  return found != by_target_.end() &&
         std::any_of(found->second.begin(), found->second.end(), [&](const std::string& id) {
           return workers_.at(id).capabilities.can_run && standings_->MayWork(id);
         });
}

BuilderVersion WorkerRegistry::NewestBuilder(const std::string& target_key) const {
  BuilderVersion newest;
  for (const auto& [id, worker] : workers_) {
    if (!worker.connected || !worker.capabilities.BuildsFor(target_key)) continue;
    const record::Environment& environment = worker.capabilities.environment;
    if (environment.codegen_version > newest.codegen_version) newest = BuilderOf(environment);
  }
  return newest;
}

void WorkerRegistry::AddBuilders(std::vector<WorkerInfo>& workers) const {
  std::map<std::string, BuilderVersion> newest;  // by target
  for (WorkerInfo& worker : workers) {
    Capabilities& can = worker.capabilities;
    if (can.can_build || !can.can_run) continue;
    const auto [builder, added] = newest.try_emplace(can.target_key);
    if (added) builder->second = NewestBuilder(can.target_key);
    can.environment.compiler = builder->second.compiler;
    can.environment.codegen_version = builder->second.codegen_version;
  }
}

std::optional<Capabilities> WorkerRegistry::DeviceOf(const std::string& target_key) const {
  const std::vector<const Worker*> workers = OfTarget(target_key);
  if (workers.empty()) return std::nullopt;
  return (*std::max_element(workers.begin(), workers.end(),
                            [](const Worker* a, const Worker* b) {
                              return a->capabilities.peak_gflops < b->capabilities.peak_gflops;
                            }))
      ->capabilities;
}

absl::StatusOr<TargetChoice> WorkerRegistry::ChooseTarget(const std::string& key) const {
  if (!key.empty()) {
    for (const Worker* worker : OfTarget(key)) {
      if (worker->capabilities.can_run) return TargetChoice{key, worker->capabilities.target};
    }
    const std::set<std::string> known = Targets();
    return absl::UnavailableError(absl::StrCat(
        "no registered worker runs target ", key, "; ",
        known.empty() ? "no target is registered" : "registered: ", absl::StrJoin(known, ", "),
        "; start hone-worker on such a machine", OrAdmit()));
  }
  // A target need not have a connected worker, because one may come back. The choice for "" prefers
  // the targets of connected workers.
  std::map<std::string, std::string> targets, of_absent;
  for (const auto& [target_key, ids] : by_target_) {
    for (const std::string& id : ids) {
      const Worker& worker = workers_.at(id);
      if (!worker.capabilities.can_run) continue;
      (worker.connected ? targets : of_absent)[target_key] = worker.capabilities.target;
    }
  }
  if (targets.empty()) targets = std::move(of_absent);
  if (targets.size() == 1) return TargetChoice{targets.begin()->first, targets.begin()->second};
  if (targets.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "target native: no worker that runs kernels is registered; start hone-worker on the "
        "machine to tune for",
        OrAdmit()));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("target native: the registered workers have several targets; name one of ",
                   absl::StrJoin(targets, ", ", [](std::string* out, const auto& target) {
                     absl::StrAppend(out, target.first);
                   })));
}

std::string WorkerRegistry::OrAdmit() const {
  std::vector<std::string> refused;
  for (const auto& [id, standing] : standings_->all()) {
    if (!standing.refused.empty() && !workers_.contains(id)) refused.push_back(id);
  }
  if (refused.empty()) return "";
  return absl::StrCat(", or admit one that is refused (", absl::StrJoin(refused, ", "),
                      "): ", HowToResume(refused[0]));
}

}  // namespace hone::fleet
