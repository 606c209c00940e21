#ifndef HONE_SERVER_RESEARCH_LAB_SUMMARY_H_
#define HONE_SERVER_RESEARCH_LAB_SUMMARY_H_

#include <string>

#include "server/research/lab/experiment.h"
#include "server/research/lab/statistics.h"

namespace hone::lab {

// Returns the share of the best known speed after `trials` trials, one value per set and seed.
SeedValues Shares(const Results& results, size_t variant, int64_t trials);

// Returns Markdown: a table of the variants over all sets, and the median trials to 99 % per set.
// The text is the same on every machine.
std::string SummaryText(const Results& results);
// Returns Markdown: the time spent, including proposing and training on this machine.
std::string TimeText(const Results& results);

// Returns CSV with a header line and one line per variant, set and seed.
std::string RunsCsv(const Results& results);
// Returns CSV with one line per improvement of the best latency so far.
std::string CurvesCsv(const Results& results);
// Returns CSV with the ratios of each variant to the baseline and their intervals.
std::string ComparisonCsv(const Results& results);
// Returns CSV with the time that each run spent, which differs from machine to machine.
std::string TimeCsv(const Results& results);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_SUMMARY_H_
