#ifndef HONE_CLIENT_CLI_RECORDS_EXPLANATION_H_
#define HONE_CLIENT_CLI_RECORDS_EXPLANATION_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/output/json_output.h"
#include "client/cli/session.h"
#include "client/cli/workload_argument.h"
#include "common/ir/roofline.h"

// What `hone explain`, `hone diff` and `hone compare` say about schedules.
namespace hone::cli {

// The roofline of an explained schedule.
ir::Roofline RooflineOf(const v1::Explanation& explanation);
// "roofline: 482.0 GFLOP/s, limited by …", or why it is unknown.
std::string RooflineText(const ir::Roofline& roofline);
Json RooflineJson(const ir::Roofline& roofline);

// "4.1 ms" if the duration of a cycle is known, otherwise "15.2 Mcycles".
std::string CyclesText(double cycles, double cycle_ns);
// The draft's estimate, by term and by statement.
Json EstimateJson(const v1::Explanation& explanation);
// What the kernel counted, and what follows from it.
Json CountersJson(const v1::Explanation& explanation);
// The same as text. Prints nothing for a trace.
void PrintCounters(const v1::Explanation& explanation);
// Record, latency_ns, gflops and outcome of an explained record; record is null for a trace.
Json MeasuredJson(const v1::Best& best);
// "record 4711, 4.880 ms, 440.1 GFLOP/s", "record 4711, crash", or "not measured" for a trace.
std::string MeasuredText(const v1::Best& best);

// A schedule as a command line names it.
struct ScheduleArgument {
  int64_t record = 0;  // 0: a trace
  std::string path;    // of the trace's file
  std::string trace;
};
// Reads a number of a record or the name of a FILE.trace. InvalidArgument: the number is wrong, the
// file cannot be read or is not a trace with all of its decisions, or the trace does not replay.
absl::StatusOr<ScheduleArgument> ReadScheduleArgument(const std::string& word);
// The same for a trace that has been read from a file.
absl::StatusOr<ScheduleArgument> ParseScheduleArgument(const std::string& path,
                                                       const std::string& text);
// Asks the server. `target`: of a trace, see v1::ExplainScheduleRequest. Errors are those of
// Connection::Explain.
absl::StatusOr<v1::Explanation> ExplainArgument(Session& session, const ScheduleArgument& argument,
                                                const std::string& target);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_RECORDS_EXPLANATION_H_
