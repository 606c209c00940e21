#ifndef HONE_SERVER_RESEARCH_LAB_SLICE_H_
#define HONE_SERVER_RESEARCH_LAB_SLICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/schedule/trace.h"

// The latency along one decision of a good schedule, all others fixed: how rough the objective is
// in which a search climbs.
namespace hone::lab {

// One value of the decision, in the order in which searches over indices see the values.
struct SliceValue {
  std::vector<int64_t> decisions;  // of the site
  double latency_ns = 0;           // 0: not legal with the other decisions, or failed
};

struct Slice {
  std::string task;      // an operator with its shape
  std::string decision;  // the instruction that draws it, as text
  std::vector<SliceValue> values;
  size_t chosen = 0;  // the value of the good schedule
};

// How rough a slice is, of the values that have a latency.
struct Roughness {
  int values = 0;
  int minima = 0;      // faster than both neighbours by more than the noise; the ends do not count
  double spread = 1;   // slowest over fastest
  double step = 1;     // ratio of the latencies of neighbours, the slower over the faster: median
  double largest = 1;  // the largest such ratio
};
Roughness RoughnessOf(const Slice& slice);

// Returns the trace with only the instruction open that draws decision `open`: the others draw each
// number from one candidate, so that the decisions keep their positions. A drawn location cannot be
// replaced and stays open. REQUIRES: `decisions` are of the trace.
schedule::Trace WithOneOpen(const schedule::Trace& trace, absl::Span<const int64_t> decisions,
                            int open);

// Returns a section of Markdown with the roughness and a table.
std::string SliceText(const Slice& slice);
// Returns a plot, the values from left to right and the latency as a logarithm.
std::string SliceSvg(const Slice& slice);

struct SliceOptions {
  std::string task;  // an operator with its shape
  int trials = 64;   // of the search for the good schedule
  int site = -1;     // which of its decisions, from 0; -1: the one with the most values up to 256
  std::string program_folder;  // contains `hone`
  std::string out;             // folder; the same run is not repeated there
};
// Tunes the operator, and then measures its best schedule with every value of one decision, with
// `hone tune`. Writes slice.md and slice.svg. InvalidArgument: there is no such decision, or it has
// one value, or more than 256; the message lists the decisions. NotFound: no schedule ran. Aborted:
// `hone` failed.
absl::StatusOr<Slice> MeasureSlice(const SliceOptions& options);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_SLICE_H_
