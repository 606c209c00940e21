#include "server/fleet/worker_events.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hone::fleet {
namespace {

// Returns where a worker is and what it offers: "target t on host pi, builds in 4 slots, runs
// kernels".
std::string Offer(const Capabilities& can) {
  std::string text = absl::StrCat("target ", can.target_key, " on host ", can.host);
  if (can.can_build) {
    absl::StrAppend(&text, ", builds in ", can.build_slots,
                    can.build_slots == 1 ? " slot" : " slots");
  }
  if (can.can_run) absl::StrAppend(&text, ", runs kernels");
  if (!can.accelerator.empty()) absl::StrAppend(&text, " on ", can.accelerator);
  return text;
}

std::string LastSeenText(absl::Duration silent) {
  if (silent == absl::InfiniteDuration()) return "not connected";
  if (silent < absl::Seconds(1)) return "seen now";
  return absl::StrCat("last seen ", absl::FormatDuration(absl::Trunc(silent, absl::Seconds(1))),
                      " ago");
}

}  // namespace

void WorkerEvents::Called(const Worker& worker, const WorkerReport& report,
                          const std::string& new_process) {
  if (report.draining) return;  // its last call
  const std::string offer = Offer(report.capabilities);
  if (worker.epoch.empty()) {
    Tell(worker.id, absl::StrCat("joined: ", offer));
  } else if (!worker.connected) {
    Tell(worker.id, absl::StrCat("came back: ", offer, ", ", LastSeen(worker)));
  } else if (!new_process.empty()) {
    Tell(worker.id, absl::StrCat("connected again: ", new_process, "; ", offer));
  }
}

void WorkerEvents::Lost(const Worker& worker, const std::string& why) {
  const std::string what = worker.leaving ? "left" : "was lost";
  Tell(worker.id,
       absl::StrCat(what, ": ", why, "; ", Offer(worker.capabilities), ", ", LastSeen(worker)));
}

void WorkerEvents::StandingChanged(const WorkerInfo& worker, const std::string& what) {
  std::string text = what;
  if (!worker.capabilities.target_key.empty()) {
    absl::StrAppend(&text, ": ", Offer(worker.capabilities));
  }
  Tell(worker.id, absl::StrCat(text, ", ", LastSeenText(worker.silent)));
}

void WorkerEvents::Tell(const std::string& worker_id, std::string text) {
  if (options_.on_event == nullptr) return;
  deferred_.Add(options_.on_event, worker_id, std::move(text));
}

std::string WorkerEvents::LastSeen(const Worker& worker) const {
  return LastSeenText(clock_.Now() - worker.last_seen);
}

}  // namespace hone::fleet
