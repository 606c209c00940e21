#include "client/cli/worker_text.h"

#include "absl/strings/str_cat.h"

namespace hone::cli {

std::string WorkerState(const client::Worker& worker) {
  const bool here = worker.connected;
  if (!worker.flagged.empty()) return here ? "refused" : "refused, disconnected";
  if (worker.draining) return here ? "draining" : "drained, disconnected";
  if (worker.stopping) return "stopped";
  if (worker.silent) return "not responding";
  return here ? "connected" : "disconnected";
}

std::string ResumedText(const client::Worker& worker) {
  if (worker.connected && !worker.stopping) return absl::StrCat(worker.id, " gets work again");
  return absl::StrCat(
      worker.id,
      " may work again but is not connected: if hone-worker still runs there, it connects within "
      "seconds; otherwise, start it");
}

}  // namespace hone::cli
