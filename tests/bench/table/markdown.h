#ifndef HONE_TESTS_BENCH_TABLE_MARKDOWN_H_
#define HONE_TESTS_BENCH_TABLE_MARKDOWN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tests/bench/table/results.h"

namespace hone::bench {

// The table that people read: a summary by groups of operators (geometric mean and worst ratio to
// the fastest library of each kernel), every kernel, what candidates cost, and `notes` as they are.
// Kernels of one operator and number of threads count once, by the fastest of the group's.
std::string ToMarkdown(const Results& results, absl::string_view notes);

}  // namespace hone::bench

#endif  // HONE_TESTS_BENCH_TABLE_MARKDOWN_H_
