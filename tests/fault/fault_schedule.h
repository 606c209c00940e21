#ifndef HONE_TESTS_FAULT_FAULT_SCHEDULE_H_
#define HONE_TESTS_FAULT_FAULT_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// What goes wrong, and when: a pure function of a seed.
namespace hone::fault {

enum class FaultKind {
  // Processes.
  kKillServer,
  kStopServer,
  kKillWorker,
  kStopWorker,
  kKillBuilder,
  kStopBuilder,
  kKillRunner,
  kStopRunner,
  kKillClient,
  // Bytes between the programs.
  kCutConnections,
  kDelayBytes,
  kBlackHole,
  kSwallowReplies,
  // Messages between a worker and the server.
  kDropRequest,
  kDropReply,
  kDelayRequest,
  kDuplicateRequest,
  kReplayResults,
  kBreakTransfer,
  // The machine.
  kFullDisk,
  kServerClockJump,
  kWorkerClockJump,
  kRestoreBackup,
};

struct FaultInfo {
  FaultKind kind;
  absl::string_view name;  // "kill -9 server"
  int weight;              // how often it is in a deck
  // How long it lasts; 0 it is over at once. `longest` is for long runs.
  absl::Duration shortest;
  absl::Duration usual;
  absl::Duration longest;
};
// Every kind, in the order of the enum.
const std::vector<FaultInfo>& AllFaults();
const FaultInfo& InfoOf(FaultKind kind);

struct Fault {
  absl::Duration at;  // since the beginning
  FaultKind kind = FaultKind::kKillServer;
  uint64_t draw = 0;     // chooses the victim, and how large a jump is
  absl::Duration lasts;  // zero where it is over at once
  friend bool operator==(const Fault&, const Fault&) = default;
};

struct ScheduleOptions {
  uint64_t seed = 1;
  int faults = 24;
  absl::Duration length = absl::Seconds(50);
  bool long_faults = false;  // silences that outlast the server's patience
};
// In order of time, evenly spread with jitter. Kinds come from shuffled decks, so that as many
// faults as a deck has cards hold every kind.
std::vector<Fault> MakeSchedule(const ScheduleOptions& options);

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_FAULT_SCHEDULE_H_
