#ifndef HONE_SERVER_LAB_SUMMARY_H_
#define HONE_SERVER_LAB_SUMMARY_H_

#include <string>

#include "server/lab/experiment.h"
#include "server/lab/statistics.h"

namespace hone::lab {

// Per variant and set, one value for each seed: the input for tables and plots. A run that never
// reached a share counts with its number of trials (or seconds), so such medians are lower bounds.
SeedValues TrialsToShare(const Results& results, size_t variant, double share);
SeedValues SecondsToShare(const Results& results, size_t variant, double share, bool brain);
SeedValues Shares(const Results& results, size_t variant, int64_t trials);
SeedValues Areas(const Results& results, size_t variant);
// Returns the fraction of runs that reached the share.
double ReachedShare(const Results& results, size_t variant, double share);

// Markdown: the variants over all sets, and per set the median trials to 99 %. Deterministic on
// every machine.
std::string SummaryText(const Results& results);
// Markdown: where the time went, including proposing and training on this machine.
std::string TimeText(const Results& results);

// CSV with a header line. One line per variant, set and seed …
std::string RunsCsv(const Results& results);
// … per improvement of the best so far …
std::string CurvesCsv(const Results& results);
// … per variant against the baseline, with intervals …
std::string ComparisonCsv(const Results& results);
// … and per run the time spent, which differs from machine to machine.
std::string TimeCsv(const Results& results);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_SUMMARY_H_
