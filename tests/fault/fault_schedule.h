#ifndef HONE_TESTS_FAULT_FAULT_SCHEDULE_H_
#define HONE_TESTS_FAULT_FAULT_SCHEDULE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// The schedule of faults: a pure function of a seed.
namespace hone::fault {

// The database below the servers. On PostgreSQL there are two servers, a leader and a standby; on
// SQLite the only server is the leader.
enum class StoreKind { kSqlite, kPostgres };

enum class FaultKind {
  // Faults of processes.
  kKillLeader,
  kStopLeader,
  kKillWorker,
  kStopWorker,
  kKillBuilder,
  kStopBuilder,
  kKillRunner,
  kStopRunner,
  kKillClient,
  // Faults of connections.
  kCutConnections,
  kDelayBytes,
  kBlackHole,
  kSwallowReplies,
  // Faults of messages between a worker and the server.
  kDropRequest,
  kDropReply,
  kDelayRequest,
  kDuplicateRequest,
  kReplayResults,
  kBreakTransfer,
  // Faults of the machine.
  kFullDisk,
  kServerClockJump,
  kWorkerClockJump,
  kRestoreBackup,
  // Faults of a PostgreSQL database and its clients.
  kKillStandby,
  kKillDatabase,
  kDemoteDatabase,
  kPartition,
  kSlowQueries,
};

struct FaultInfo {
  FaultKind kind;
  absl::string_view name;  // "kill -9 leader"
  int weight;              // number of cards in a deck
  // How long it lasts; 0: a single moment. `longest` is for long runs.
  absl::Duration shortest;
  absl::Duration usual;
  absl::Duration longest;
  // The store that it needs; nullopt: any.
  std::optional<StoreKind> store;
};
// All kinds, in enum order.
const std::vector<FaultInfo>& AllFaults();
// The kinds that can strike servers with this store.
std::vector<FaultKind> FaultsOf(StoreKind store);
const FaultInfo& InfoOf(FaultKind kind);

struct Fault {
  absl::Duration at;  // since the start
  FaultKind kind = FaultKind::kKillLeader;
  uint64_t draw = 0;     // selects the victim, and the size of a jump
  absl::Duration lasts;  // zero for a single moment
  friend bool operator==(const Fault&, const Fault&) = default;
};

struct ScheduleOptions {
  uint64_t seed = 1;
  StoreKind store = StoreKind::kSqlite;
  std::vector<FaultKind> kinds;  // only these; empty: all that the store can have
  int faults = 24;
  absl::Duration length = absl::Seconds(50);
  bool long_faults = false;  // silences longer than the server's patience
};
// Returns faults in time order, evenly spread with jitter. Kinds come from shuffled decks, so a run
// with as many faults as cards has every kind.
std::vector<Fault> MakeSchedule(const ScheduleOptions& options);

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_FAULT_SCHEDULE_H_
