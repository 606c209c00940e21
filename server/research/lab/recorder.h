#ifndef HONE_SERVER_RESEARCH_LAB_RECORDER_H_
#define HONE_SERVER_RESEARCH_LAB_RECORDER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/research/lab/recorded_set.h"

namespace hone::lab {

struct RecordOptions {
  std::string name;                      // of the set
  std::vector<std::string> space_files;  // trace files with open samplings, all of one workload
  std::string work_folder;               // stores of the rounds; continues an interrupted recording
  std::string program_folder;            // contains `hone`
  bool only_count = false;               // only print the number of candidates
  size_t limit = 4000;                   // maximum number of legal vectors in all spaces together
  int rounds = 3;           // the first round measures all programs, the others the fastest again
  double top_share = 0.15;  // share of the programs that later rounds measure again
};

// Measures every legal candidate of the design spaces on this machine, with the real service: `hone
// tune --space trace:FILE --strategy grid` as child processes, with a separate store per round. In
// later rounds the store already contains the results of all but the fastest programs, so only
// those are measured again; a program's latency is the median of its rounds. Screening stops slow
// candidates early, so their latencies are rough.
//
// Cancelled: only_count is set. InvalidArgument: a malformed trace file, several workloads, or a
// space in which a random draw was not enumerated. ResourceExhausted: more than `limit` candidates.
// Aborted: `hone` failed, or candidates have no result; run it again to continue.
absl::StatusOr<RecordedSet> RecordSet(const RecordOptions& options);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_RECORDER_H_
