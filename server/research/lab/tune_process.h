#ifndef HONE_SERVER_RESEARCH_LAB_TUNE_PROCESS_H_
#define HONE_SERVER_RESEARCH_LAB_TUNE_PROCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/store/store.h"

namespace hone::lab {

// A run of `hone tune WORDS… --json` with its own store.
struct TuneProcess {
  std::string program_folder;      // contains `hone`
  std::string data_folder;         // the store is hone/hone.db in it
  std::vector<std::string> words;  // what to tune, and options
  // When this text appears on its standard error, it is interrupted twice, so that it ends at once,
  // and any exit status is accepted. "": never.
  std::string interrupt_at = "";
};

// Runs it to its end, passes its standard error on, and returns its standard output. NotFound: it
// cannot be started. Aborted: it had a non-zero exit status or was ended by a signal; the message
// has the command line.
absl::StatusOr<std::string> RunTune(const TuneProcess& process);

// A screened candidate from the store of a private server that has ended.
struct StoreResult {
  record::Record record;
  // The time from the previous result to this one, which is the time to run this candidate, because
  // one runner runs one after the other. At most four times the median, because longer times are
  // those in which the runner waited for builders.
  double run_ms = 0;
  double elapsed_ms = 0;  // from the job's creation to this result
};

// Opens a store; waits up to half a minute for a server that is just ending. Errors are those of
// the store.
absl::StatusOr<std::unique_ptr<store::Store>> OpenStoreOfEndedServer(const std::string& path);

// Returns every screened candidate that is not a default schedule, in commit order. Errors are
// those of the store.
absl::StatusOr<std::vector<StoreResult>> ReadStoreResults(const std::string& path);

// Returns the latency of the confirmed and published best for the store's only workload; 0: none.
// Errors are those of the store.
absl::StatusOr<double> ReadPublishedLatencyNs(const std::string& path);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_TUNE_PROCESS_H_
