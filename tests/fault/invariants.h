#ifndef HONE_TESTS_FAULT_INVARIANTS_H_
#define HONE_TESTS_FAULT_INVARIANTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/lib/api.h"
#include "common/record/record.h"
#include "server/store/store.h"
#include "tests/fault/ledger.h"

// What must hold whatever went wrong.
namespace hone::fault {

struct Verdict {
  std::string what;                     // that must hold
  int64_t looked_at = 0;                // of how many it was asked
  std::vector<std::string> violations;  // empty: it holds
  std::string note;                     // figures for a person
};

// Everything in the store, by id. Errors: as of the store.
absl::StatusOr<std::vector<record::Record>> AllRecords(store::Store& store);

// Every acknowledged measurement is there exactly once: its samples stand in one record, or – its
// lease had ended, so that the result came too late – the candidate was given out again, and has
// its record from there.
Verdict CheckAcknowledged(const std::vector<record::Record>& records,
                          const std::vector<Acknowledged>& acknowledged);
// Every record that a client was shown is there and says the same.
Verdict CheckShown(const std::vector<record::Record>& records,
                   const std::map<int64_t, Shown>& shown);
// No measurement stands in two records, and no trial of a job was screened twice.
Verdict CheckOnce(const std::vector<record::Record>& records);
// Each job has ended, and says why when it is not done.
Verdict CheckJobs(store::Store& store);
// The published best of each workload is the fastest that was confirmed, of those that did not fail
// when they were measured again; its artifact is there, whole. `served`: what the server answered
// for each of these workloads, by digest.
Verdict CheckBests(store::Store& store, const std::vector<record::Record>& records,
                   const std::map<std::string, client::Best>& served);
// The store's own check of the whole file.
Verdict CheckIntegrity(store::Store& store);

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_INVARIANTS_H_
