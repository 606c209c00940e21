#include "tests/fault/ledger.h"

#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/record/proto_convert.h"
#include "hone/v1/worker.pb.h"

namespace hone::fault {
namespace {

// Lease ids begin with the name of the run of the server.
std::string ServerOf(const std::string& lease) { return lease.substr(0, lease.rfind('-')); }

}  // namespace

std::string MarkOf(const std::vector<double>& samples_ns) {
  if (samples_ns.size() < 2) return "";
  std::string bytes(2 * sizeof(double), '\0');
  std::memcpy(bytes.data(), samples_ns.data(), bytes.size());
  return absl::BytesToHexString(bytes);
}

Shown ShownOf(const record::Record& record) {
  return {.mark = MarkOf(record.result.samples_ns),
          .outcome = std::string(record::OutcomeName(record.result.outcome)),
          .job = record.job_id,
          .trial = record.trial,
          .policy = record.policy.name};
}

void Ledger::Told(const v1::SynchronizeRequest& request) {
  absl::MutexLock lock(&mutex_);
  for (const v1::FinishedLease& finished : request.finished()) {
    auto lease = leases_.find(finished.lease_id());
    const auto result = record::FromProto(finished.result());
    if (lease == leases_.end() || !result.ok()) continue;
    lease->second.finished = true;
    lease->second.outcome = result->outcome;
    lease->second.mark = MarkOf(result->samples_ns);
  }
}

void Ledger::Answered(const v1::SynchronizeResponse& response) {
  absl::MutexLock lock(&mutex_);
  for (const v1::Lease& granted : response.start()) {
    Lease& lease = leases_[granted.lease_id()];
    if (lease.grant > 0) continue;  // a repeated answer
    lease.asked = {.job = granted.job_id(),
                   .space = granted.space_digest(),
                   .decisions = {granted.decisions().begin(), granted.decisions().end()},
                   .policy = granted.policy().name()};
    lease.run = granted.run();
    lease.grant = ++grants_[lease.asked];
    const std::string server = ServerOf(granted.lease_id());
    servers_[lease.asked].insert(server);
    last_server_[granted.job_id()] = server;
  }
  for (const std::string& id : response.cancel()) {
    if (auto lease = leases_.find(id); lease != leases_.end()) lease->second.cancelled = true;
  }
  const std::set<std::string> stored(response.stored().begin(), response.stored().end());
  for (const std::string& id : response.durable()) {
    auto lease = leases_.find(id);
    if (lease == leases_.end() || !lease->second.finished || !lease->second.run) continue;
    if (lease->second.undone) continue;
    Acknowledged& promise = promises_.acknowledged[id];
    promise = {.lease = id,
               .asked = lease->second.asked,
               .outcome = lease->second.outcome,
               .mark = lease->second.mark,
               .stored = promise.stored || stored.contains(id)};
  }
}

void Ledger::Saw(const std::vector<record::Record>& records) {
  absl::MutexLock lock(&mutex_);
  for (const record::Record& record : records) promises_.shown[record.id] = ShownOf(record);
}

std::vector<Acknowledged> Ledger::acknowledged() const {
  absl::MutexLock lock(&mutex_);
  std::vector<Acknowledged> all;
  for (const auto& [id, promise] : promises_.acknowledged) {
    Acknowledged& result = all.emplace_back(promise);
    const Lease& lease = leases_.at(id);
    result.cancelled = lease.cancelled;
    result.grants_after = grants_.at(lease.asked) - lease.grant;
    result.by_several_servers =
        servers_.at(lease.asked).size() > 1 || last_server_.at(lease.asked.job) != ServerOf(id);
  }
  return all;
}

std::map<int64_t, Shown> Ledger::shown() const {
  absl::MutexLock lock(&mutex_);
  return promises_.shown;
}

Ledger::Promises Ledger::Copy() const {
  absl::MutexLock lock(&mutex_);
  return promises_;
}

Ledger::Restoration Ledger::Restored(const Promises& at_backup,
                                     const std::vector<record::Record>& records) {
  std::map<int64_t, Shown> held;
  std::set<std::string> marks;
  std::set<Asked> asked;  // results without samples
  for (const record::Record& record : records) {
    held[record.id] = ShownOf(record);
    marks.insert(held[record.id].mark);
    asked.insert({record.job_id, record.candidate.space_digest, record.candidate.decisions,
                  record.policy.name});
  }
  Restoration restoration;
  Promises kept;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, promise] : promises_.acknowledged) {
    const bool is_there =
        promise.mark.empty() ? asked.contains(promise.asked) : marks.contains(promise.mark);
    if (is_there) {
      kept.acknowledged[id] = promise;
    } else {
      // The result may also have come too late, and its job has not continued yet. A client that
      // saw the record distinguishes the two cases.
      ++restoration.gone;
    }
  }
  for (const auto& [id, shown] : promises_.shown) {
    auto record = held.find(id);
    if (record != held.end() && record->second == shown) {
      kept.shown[id] = shown;
    } else if (at_backup.shown.contains(id)) {
      restoration.broken.push_back(absl::StrCat("the backup does not hold record ", id));
    } else {
      ++restoration.gone;
    }
  }
  promises_ = std::move(kept);
  for (auto& [id, lease] : leases_) lease.undone = !promises_.acknowledged.contains(id);
  return restoration;
}

}  // namespace hone::fault
