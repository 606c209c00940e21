#ifndef HONE_TESTS_FAULT_INVARIANTS_H_
#define HONE_TESTS_FAULT_INVARIANTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/connection/api.h"
#include "common/record/record.h"
#include "server/store/store.h"
#include "tests/fault/ledger.h"

// The invariants.
namespace hone::fault {

struct Verdict {
  std::string what;                     // the invariant
  int64_t looked_at = 0;                // number of checked cases
  std::vector<std::string> violations;  // empty if it holds
  std::string note;                     // human-readable figures
};

// Returns all records of the store, by id. Errors are those of the store.
absl::StatusOr<std::vector<record::Record>> AllRecords(store::Store& store);

// Every acknowledged measurement is stored exactly once: its samples are in one record. If its
// lease had ended before the result arrived, so that no server said that it was stored, the
// candidate has a record from another lease instead.
Verdict CheckAcknowledged(const std::vector<record::Record>& records,
                          const std::vector<Acknowledged>& acknowledged);
// Every record that a client has seen is stored unchanged.
Verdict CheckShown(const std::vector<record::Record>& records,
                   const std::map<int64_t, Shown>& shown);
// No measurement is in two records, and no trial of a job was screened twice.
Verdict CheckOnce(const std::vector<record::Record>& records);
// Each job has ended, with a reason if it is not done.
Verdict CheckJobs(store::Store& store);
// The published best of each workload is the fastest confirmed candidate that did not fail when it
// was measured again, and its artifact is intact. `served`: the server's answer for each workload,
// by digest.
Verdict CheckBests(store::Store& store, const std::vector<record::Record>& records,
                   const std::map<std::string, v1::Best>& served);
// The store's own check of the whole file.
Verdict CheckIntegrity(store::Store& store);

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_INVARIANTS_H_
