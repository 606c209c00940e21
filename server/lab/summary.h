#ifndef HONE_SERVER_LAB_SUMMARY_H_
#define HONE_SERVER_LAB_SUMMARY_H_

#include <string>

#include "server/lab/experiment.h"
#include "server/lab/statistics.h"

namespace hone::lab {

// Per variant and set, one value of each seed: what the tables and plots are made of. A run that
// never reached a share counts with its number of trials (or seconds) as if it had just then: such
// medians are lower bounds.
SeedValues TrialsToShare(const Results& results, size_t variant, double share);
SeedValues SecondsToShare(const Results& results, size_t variant, double share, bool brain);
SeedValues Shares(const Results& results, size_t variant, int64_t trials);
SeedValues Areas(const Results& results, size_t variant);
// How many of the runs reached the share, of all.
double ReachedShare(const Results& results, size_t variant, double share);

// Markdown: the variants over all sets, and per set the median trials to 99 %. The same for the
// same results, on every machine.
std::string SummaryText(const Results& results);
// Markdown: where the time goes; what proposing and training took here is in it.
std::string TimeText(const Results& results);

// Comma-separated values with a line of names. One line per variant, set and seed …
std::string RunsCsv(const Results& results);
// … per improvement of the best so far …
std::string CurvesCsv(const Results& results);
// … per variant against the baseline, with intervals …
std::string ComparisonCsv(const Results& results);
// … and per run where the time went, which differs from machine to machine.
std::string TimeCsv(const Results& results);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_SUMMARY_H_
