#ifndef HONE_SERVER_FLEET_STANDINGS_H_
#define HONE_SERVER_FLEET_STANDINGS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/fleet/worker.h"

namespace hone::fleet {

// Returns the quoted command that resumes a drained or refused worker.
std::string ResumeCommand(const std::string& id);
// Returns a clause for users that says how an administrator resumes the worker.
std::string HowToResume(const std::string& id);

// The standings of the workers that are drained or refused (flagged or removed), by name, and which
// changes of standings are not stored yet. Includes workers that are not connected. A worker is
// also refused under every other name of its identity. Thread-safe.
class Standings {
 public:
  // Returns the standing of a worker, which may be refused under another name. An unknown worker is
  // neither drained nor refused. `identity`: of the worker, if it is not registered yet.
  Standing Of(const std::string& id) const;
  Standing Of(const std::string& id, const std::string& identity) const;
  // Returns the standing that was set for this name.
  Standing Own(const std::string& id) const;
  // Returns the other name under which this worker is refused; "" if there is none.
  std::string RefusedAs(const std::string& id) const;
  // Whether the worker is neither drained nor refused.
  bool MayWork(const std::string& id) const;
  bool IsDrained(const std::string& id) const { return Of(id).drained; }
  // Returns every worker that is drained, flagged or removed, by name.
  std::map<std::string, Standing> all() const;
  int64_t refused_count() const;

  // Sets the identity (IdentityOf) of a registered worker; "" forgets it.
  void Identify(const std::string& id, const std::string& identity);
  std::string IdentityOf(const std::string& id) const;
  // Returns the names of the registered workers with the identity of this one, and its own.
  std::vector<std::string> NamesOf(const std::string& id) const;
  // Whether the worker is one of these, under this or another name.
  bool IsOneOf(const std::string& id, const std::vector<std::string>& others) const;

  // Sets a worker's standing, which must then be stored.
  void Change(const Standing& standing);
  // Returns the unstored change of a worker; nullopt if everything is stored.
  std::optional<UnstoredStanding> Unstored(const std::string& id) const;
  // Marks this change as stored, unless there is a newer one.
  void MarkStored(const UnstoredStanding& stored);

  // Takes over the stored standings. Called before workers call.
  void Adopt(const std::vector<Standing>& stored);

 private:
  Standing Get(const std::string& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Identity(const std::string& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the name under which this identity is refused; "" if it is not.
  std::string RefusedName(const std::string& identity) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Set(const Standing& standing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<std::string, Standing> known_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> identities_ ABSL_GUARDED_BY(mutex_);         // by name
  std::map<std::string, std::set<std::string>> refused_ ABSL_GUARDED_BY(mutex_);  // by identity
  // The number of the last change of each worker whose standing is not stored.
  std::map<std::string, int64_t> pending_ ABSL_GUARDED_BY(mutex_);
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_STANDINGS_H_
