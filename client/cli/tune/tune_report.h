#ifndef HONE_CLIENT_CLI_TUNE_TUNE_REPORT_H_
#define HONE_CLIENT_CLI_TUNE_TUNE_REPORT_H_

#include <string>

#include "client/cli/output/json_output.h"
#include "client/connection/api.h"

// The reports of jobs that have ended.
namespace hone::cli {

// The peak FLOP rate of the device for the job's workload, in GFLOP/s; 0: unknown.
double PeakOf(const v1::Job& job);

// Prints how a job of one workload ended: the latencies of its default schedule and its best, where
// the best comes from, and what makes the figures less certain. `title`: the workload as the user
// wrote it. `peak`: the peak of the device in GFLOP/s; 0: unknown. `trace`: whether to print the
// best schedule as well.
void PrintTuneReport(const v1::Job& job, const std::string& title, double peak, bool trace);

// The following functions report the check of a handwritten schedule: a job whose space contains
// only this candidate.

// Whether the schedule gave a correct output and a latency.
bool PassedCheck(const v1::Job& job);

// Whether the latency of the schedule comes from a confirmation, and not only from the search.
bool CheckIsConfirmed(const v1::Job& job);

// Prints the result. A latency that is not confirmed is marked. REQUIRES: PassedCheck.
void PrintCheck(const v1::Job& job);

// Adds the result to the output of `hone schedule --check --json`: target, latency_ns, gflops,
// peak_gflops, share_of_peak, checked, confirmed, outcome, detail, max_error, compile_ms, policy,
// default, best, job, state, note. Without a result, those from outcome to policy are missing.
void AddCheckJson(const v1::Job& job, Json& json);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TUNE_TUNE_REPORT_H_
