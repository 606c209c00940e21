#ifndef HONE_SERVER_FLEET_STANDINGS_H_
#define HONE_SERVER_FLEET_STANDINGS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/fleet/worker.h"

namespace hone::fleet {

// How workers stand: which names are drained, flagged or removed, whether their workers are here or
// away, and which of these changes are not stored yet. Thread-safe.
class Standings {
 public:
  // How a worker stands. Nothing is held against an unknown name.
  Standing Of(const std::string& id) const;
  // The worker is neither drained nor refused.
  bool MayWork(const std::string& id) const;
  bool IsDrained(const std::string& id) const { return Of(id).drained; }
  // Why the worker gets no leases; "" if it gets some.
  std::string Refusal(const std::string& id) const { return Of(id).refused; }
  // Every worker against which something is held, by name.
  std::map<std::string, Standing> all() const;
  int64_t refused() const;

  // A change that was made here and is to be stored: of the drained part, of the refused part, or
  // of both.
  void Change(const Standing& standing, bool drained, bool refused);
  // What is to be stored of a worker; nullopt if everything is stored.
  std::optional<UnstoredStanding> Unstored(const std::string& id) const;
  // This is stored, unless something newer is to be stored.
  void Stored(const UnstoredStanding& stored);

  // Takes over what is stored, as it was read since BeginAdopt: the standing of every worker,
  // except those whose own change was not stored then. Returns the standings that changed. One
  // adoption at a time.
  void BeginAdopt();
  std::vector<Standing> Adopt(const std::vector<Standing>& stored);
  // Ends an adoption that cannot be carried out.
  void EndAdopt();

 private:
  // What is not known to be stored of a change. During an adoption also what was stored meanwhile.
  struct Pending {
    int64_t number = 0;
    bool drained = false;
    bool refused = false;
    bool stored = false;
  };
  Standing Get(const std::string& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Set(const Standing& standing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishAdopt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<std::string, Standing> known_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool adopting_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_STANDINGS_H_
