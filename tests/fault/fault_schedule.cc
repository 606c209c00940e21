#include "tests/fault/fault_schedule.h"

#include <utility>

#include "common/base/rng.h"

namespace hone::fault {
namespace {

constexpr uint64_t kShuffle = 1;
constexpr uint64_t kTimes = 2;
// In long runs, one in this many faults with a duration is long.
constexpr uint64_t kLongOneIn = 5;

}  // namespace

const std::vector<FaultInfo>& AllFaults() {
  constexpr absl::Duration kNone = absl::ZeroDuration();
  const auto ms = [](int64_t n) { return absl::Milliseconds(n); };
  static const auto* const faults = new std::vector<FaultInfo>{
      {FaultKind::kKillLeader, "kill -9 leader", 2, kNone, kNone, kNone},
      {FaultKind::kStopLeader, "stop leader", 1, ms(300), ms(2000), ms(15000)},
      {FaultKind::kKillWorker, "kill -9 worker", 2, kNone, kNone, kNone},
      {FaultKind::kStopWorker, "stop worker", 1, ms(300), ms(3000), ms(25000)},
      {FaultKind::kKillBuilder, "kill -9 builder", 2, kNone, kNone, kNone},
      {FaultKind::kStopBuilder, "stop builder", 1, ms(300), ms(2000), ms(8000)},
      {FaultKind::kKillRunner, "kill -9 runner", 2, kNone, kNone, kNone},
      {FaultKind::kStopRunner, "stop runner", 1, ms(300), ms(2000), ms(8000)},
      {FaultKind::kKillClient, "kill -9 client", 1, kNone, kNone, kNone},
      {FaultKind::kCutConnections, "cut connections", 1, kNone, kNone, kNone},
      {FaultKind::kDelayBytes, "delay bytes", 1, ms(500), ms(3000), ms(6000)},
      {FaultKind::kBlackHole, "black hole", 1, ms(500), ms(3000), ms(25000)},
      {FaultKind::kSwallowReplies, "swallow replies, then cut", 1, ms(200), ms(1500), ms(3000)},
      {FaultKind::kDropRequest, "drop messages", 1, kNone, kNone, kNone},
      {FaultKind::kDropReply, "drop replies", 1, kNone, kNone, kNone},
      {FaultKind::kDelayRequest, "delay messages", 1, ms(200), ms(2000), ms(6000)},
      {FaultKind::kDuplicateRequest, "duplicate messages", 1, kNone, kNone, kNone},
      {FaultKind::kReplayResults, "replay results", 1, kNone, kNone, kNone},
      {FaultKind::kBreakTransfer, "break artifact transfers", 1, kNone, kNone, kNone},
      {FaultKind::kFullDisk, "full disk", 1, ms(500), ms(1500), ms(4000)},
      {FaultKind::kServerClockJump, "server's clock jumps", 1, kNone, kNone, kNone},
      {FaultKind::kWorkerClockJump, "worker's clock jumps", 1, kNone, kNone, kNone},
      {FaultKind::kRestoreBackup, "restore a backup", 1, kNone, kNone, kNone, StoreKind::kSqlite},
      {FaultKind::kKillStandby, "kill -9 standby", 1, kNone, kNone, kNone, StoreKind::kPostgres},
      {FaultKind::kKillDatabase, "kill -9 database", 2, kNone, kNone, kNone, StoreKind::kPostgres},
      {FaultKind::kDemoteDatabase, "database only accepts reads", 1, ms(500), ms(2000), ms(8000),
       StoreKind::kPostgres},
      {FaultKind::kPartition, "leader cut off from database", 2, ms(500), ms(3000), ms(25000),
       StoreKind::kPostgres},
      {FaultKind::kSlowQueries, "slow queries", 1, ms(500), ms(2000), ms(6000),
       StoreKind::kPostgres},
  };
  return *faults;
}

const FaultInfo& InfoOf(FaultKind kind) { return AllFaults()[static_cast<size_t>(kind)]; }

std::vector<FaultKind> FaultsOf(StoreKind store) {
  std::vector<FaultKind> kinds;
  for (const FaultInfo& info : AllFaults()) {
    if (info.store.value_or(store) == store) kinds.push_back(info.kind);
  }
  return kinds;
}

std::vector<Fault> MakeSchedule(const ScheduleOptions& options) {
  const std::vector<FaultKind> kinds =
      options.kinds.empty() ? FaultsOf(options.store) : options.kinds;
  std::vector<Fault> schedule;
  std::vector<FaultKind> deck;
  uint64_t decks = 0;
  for (int i = 0; i < options.faults; ++i) {
    if (deck.empty()) {
      // One of each first, so that a short run has every kind; then by weight.
      for (const FaultKind kind : kinds) {
        deck.insert(deck.end(), decks == 0 ? 1 : InfoOf(kind).weight, kind);
      }
      Rng rng(options.seed, kShuffle, decks++);
      for (size_t k = deck.size(); k > 1; --k) std::swap(deck[k - 1], deck[rng.Below(k)]);
    }
    Rng rng(options.seed, kTimes, static_cast<uint64_t>(i));
    Fault fault{.at = options.length * ((i + rng.Uniform()) / options.faults), .kind = deck.back()};
    deck.pop_back();
    fault.draw = rng();
    const FaultInfo& info = InfoOf(fault.kind);
    const bool lasts_long = options.long_faults && rng.Below(kLongOneIn) == 0;
    const absl::Duration most = lasts_long ? info.longest : info.usual;
    fault.lasts = info.shortest + (most - info.shortest) * rng.Uniform();
    schedule.push_back(fault);
  }
  return schedule;
}

}  // namespace hone::fault
