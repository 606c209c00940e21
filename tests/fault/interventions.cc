#include "tests/fault/interventions.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace hone::fault {
namespace {

using Kind = Intervention::Kind;

const std::map<Kind, absl::string_view>& Deeds() {
  static const auto* const deeds =
      new std::map<Kind, absl::string_view>{{Kind::kUnflag, "was flagged, and was unflagged"},
                                            {Kind::kResume, "was resumed"},
                                            {Kind::kRestart, "ended by itself, and was restarted"}};
  return *deeds;
}

// Errors of a database that is away, is ending or starting, or cannot be reached.
const std::vector<absl::string_view>& DatabaseIsAway() {
  static const auto* const texts = new std::vector<absl::string_view>{
      "terminating connection",  // the session was ended
      "server closed the connection",
      "connection to server",  // it could not be made
      "connection not open",
      "no connection to the server",
      "could not receive data",
      "could not send data",
      "timeout expired",
      "the database system is",  // starting up, shutting down, in recovery mode
      "the lock of the leader is taken",
  };
  return *texts;
}

// What breaks the measurement of one worker. A killed runner alone says nothing about a candidate,
// but the worker of a stopped one kills it and reports that the kernel took too long.
const std::vector<FaultKind>& FaultsOfMeasurements() {
  static const auto* const kinds =
      new std::vector<FaultKind>{FaultKind::kKillRunner, FaultKind::kStopRunner,
                                 FaultKind::kKillWorker, FaultKind::kStopWorker};
  return *kinds;
}

// What keeps messages or artifacts of a worker from the server.
const std::vector<FaultKind>& FaultsOfConnections() {
  static const auto* const kinds = new std::vector<FaultKind>{
      FaultKind::kKillLeader,     FaultKind::kStopLeader,     FaultKind::kKillWorker,
      FaultKind::kStopWorker,     FaultKind::kKillBuilder,    FaultKind::kStopBuilder,
      FaultKind::kCutConnections, FaultKind::kDelayBytes,     FaultKind::kBlackHole,
      FaultKind::kSwallowReplies, FaultKind::kDropRequest,    FaultKind::kDropReply,
      FaultKind::kDelayRequest,   FaultKind::kBreakTransfer,  FaultKind::kRestoreBackup,
      FaultKind::kKillDatabase,   FaultKind::kDemoteDatabase, FaultKind::kPartition};
  return *kinds;
}

const std::vector<FaultKind>& FaultsOfDatabase() {
  static const auto* const kinds = new std::vector<FaultKind>{
      FaultKind::kKillDatabase, FaultKind::kDemoteDatabase, FaultKind::kPartition,
      FaultKind::kSlowQueries,  FaultKind::kFullDisk,       FaultKind::kStopLeader};
  return *kinds;
}

std::string Names(const std::vector<FaultKind>& kinds) {
  return absl::StrJoin(kinds, ", ", [](std::string* out, FaultKind kind) {
    absl::StrAppend(out, InfoOf(kind).name);
  });
}

bool Explains(const ExplanationRule& rule, const Intervention& intervention,
              const std::vector<StruckFault>& faults) {
  const auto explaining =
      std::count_if(faults.begin(), faults.end(), [&](const StruckFault& fault) {
        return std::find(rule.faults.begin(), rule.faults.end(), fault.kind) != rule.faults.end() &&
               fault.began <= intervention.at && intervention.at <= fault.ended + rule.within &&
               (!rule.names_victim ||
                (!fault.victim.empty() && absl::StrContains(intervention.reason, fault.victim)));
      });
  return explaining >= rule.at_least;
}

// Returns why no rule explains the intervention; "" if one does.
std::string WhyUnexplained(const Intervention& intervention,
                           const std::vector<StruckFault>& faults) {
  std::string why;
  for (const ExplanationRule& rule : ExplanationRules()) {
    const bool is_known =
        std::any_of(rule.reasons.begin(), rule.reasons.end(), [&](absl::string_view reason) {
          return rule.kind == intervention.kind && absl::StrContains(intervention.reason, reason);
        });
    if (!is_known) continue;
    if (Explains(rule, intervention, faults)) return "";
    why = absl::StrFormat("fewer than %d of these faults struck%s in the %.0f s before: %s",
                          rule.at_least, rule.names_victim ? " a worker that it names" : "",
                          absl::ToDoubleSeconds(rule.within), Names(rule.faults));
  }
  return why.empty() ? "no fault has this effect" : why;
}

}  // namespace

const std::vector<ExplanationRule>& ExplanationRules() {
  static const auto* const rules = new std::vector<ExplanationRule>{
      // A worker that checked the winner of another one could not measure it. The verdict waits for
      // the answer of a third worker.
      {.kind = Kind::kUnflag,
       .reasons = {" says that it is right, and "},
       .faults = FaultsOfMeasurements(),
       .within = absl::Minutes(1),
       .names_victim = true},
      {.kind = Kind::kResume,
       .reasons = {"a second worker rejected every finalist"},
       .faults = FaultsOfMeasurements(),
       .within = absl::Minutes(1),
       .names_victim = true},
      // A job is given up when its server was lost twice in the same kind of step. A leader that
      // was deposed in it counts as well, because the next leader cannot tell the two apart.
      {.kind = Kind::kResume,
       .reasons = {"the server ended abnormally"},
       .faults = {FaultKind::kKillLeader, FaultKind::kStopLeader, FaultKind::kRestoreBackup,
                  FaultKind::kKillDatabase, FaultKind::kDemoteDatabase, FaultKind::kPartition,
                  FaultKind::kSlowQueries, FaultKind::kFullDisk},
       .within = absl::Minutes(2),
       .at_least = 2},
      // The second build of a winner fails after three attempts, or after two minutes without a
      // builder.
      {.kind = Kind::kResume,
       .reasons = {"no builder of its version built"},
       .faults = FaultsOfConnections(),
       .within = absl::Seconds(130),
       .at_least = 2},
      // The server waits 30 s for the artifact.
      {.kind = Kind::kResume,
       .reasons = {"no worker sent the artifact of a finalist"},
       .faults = FaultsOfConnections(),
       .within = absl::Seconds(45)},
      // A full disk. SQLite's file is limited; PostgreSQL's disk really is full, and a database
      // that
      // has no room for its log ends.
      {.kind = Kind::kResume,
       .reasons = {"free space on the disk of", "No space left on device"},
       .faults = {FaultKind::kFullDisk},
       .within = absl::Seconds(15)},
      {.kind = Kind::kRestart,
       .reasons = {"free space on the disk of", "No space left on device"},
       .faults = {FaultKind::kFullDisk},
       .within = absl::Seconds(15)},
      // A database that only accepts reads. A server does not start on it.
      {.kind = Kind::kResume,
       .reasons = {"read-only transaction", "only accepts reads"},
       .faults = {FaultKind::kDemoteDatabase},
       .within = absl::Seconds(15)},
      {.kind = Kind::kRestart,
       .reasons = {"read-only transaction", "only accepts reads"},
       .faults = {FaultKind::kDemoteDatabase},
       .within = absl::Seconds(15)},
      // A database that is away. Attempts to connect take 5 s, and a leader tries to continue for
      // as long.
      {.kind = Kind::kResume,
       .reasons = DatabaseIsAway(),
       .faults = FaultsOfDatabase(),
       .within = absl::Seconds(15)},
      {.kind = Kind::kRestart,
       .reasons = DatabaseIsAway(),
       .faults = FaultsOfDatabase(),
       .within = absl::Seconds(15)},
      // A database that was started while the last processes of the killed one were ending.
      {.kind = Kind::kRestart,
       .reasons = {"is still in use", "already exists"},
       .faults = {FaultKind::kKillDatabase},
       .within = absl::Seconds(5)},
  };
  return *rules;
}

Verdict CheckInterventions(const std::vector<Intervention>& interventions,
                           const std::vector<StruckFault>& faults, absl::Time began) {
  Verdict verdict{.what = "faults explain every flag, failed job and end of a server",
                  .looked_at = static_cast<int64_t>(interventions.size())};
  std::map<Kind, int> counts;
  for (const Intervention& intervention : interventions) {
    ++counts[intervention.kind];
    const std::string why = WhyUnexplained(intervention, faults);
    if (why.empty()) continue;
    verdict.violations.push_back(absl::StrFormat(
        "%s %s at %.1f s: \"%s\"; %s", intervention.whom, Deeds().at(intervention.kind),
        absl::ToDoubleSeconds(intervention.at - began), intervention.reason, why));
  }
  verdict.note = absl::StrCat(counts[Kind::kUnflag], " workers unflagged, ", counts[Kind::kResume],
                              " jobs resumed, ", counts[Kind::kRestart], " programs restarted");
  return verdict;
}

}  // namespace hone::fault
