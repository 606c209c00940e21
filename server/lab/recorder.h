#ifndef HONE_SERVER_LAB_RECORDER_H_
#define HONE_SERVER_LAB_RECORDER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/lab/recorded_set.h"

namespace hone::lab {

struct RecordOptions {
  std::string name;                      // of the set
  std::vector<std::string> space_files;  // trace files with open samplings, all of one workload
  std::string work_folder;               // stores of the rounds; an interrupted recording goes on
  std::string program_folder;            // where `hone` is
  bool only_count = false;               // says how many candidates there are, and measures nothing
  size_t limit = 4000;                   // legal vectors of all spaces together
  int rounds = 3;                        // the first measures all, the others the fastest again
  double top_share = 0.15;               // of the programs, measured again in later rounds
};

// Measures every legal candidate of the design spaces on this machine, with the real service: `hone
// tune --space trace:FILE --strategy grid` as child processes, with a store of their own per round.
// In later rounds the store begins with the results of all but the fastest programs, so that only
// those are measured again; a program's latency is the median of its rounds. Screening stops slow
// candidates early, so theirs are rough.
//
// Cancelled: only_count. InvalidArgument: a malformed trace file, several workloads, or a space in
// which a random draw was not enumerated. ResourceExhausted: more than `limit` candidates. Aborted:
// `hone` failed, or candidates are left without a result: record again, it goes on.
absl::StatusOr<RecordedSet> RecordSet(const RecordOptions& options);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_RECORDER_H_
