#ifndef HONE_CLIENT_CLI_TUNE_TUNE_REPORT_H_
#define HONE_CLIENT_CLI_TUNE_TUNE_REPORT_H_

#include <string>

#include "client/connection/api.h"

namespace hone::cli {

// The peak FLOP rate of the device for the job's workload, in GFLOP/s; 0: unknown.
double PeakOf(const v1::Job& job);

// Prints how a job of one workload ended: the latencies of its default schedule and its best, where
// the best comes from, and what makes the figures less certain. `title`: the workload as the user
// wrote it. `peak`: the peak of the device in GFLOP/s; 0: unknown. `trace`: whether to print the
// best schedule as well.
void PrintTuneReport(const v1::Job& job, const std::string& title, double peak, bool trace);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TUNE_TUNE_REPORT_H_
