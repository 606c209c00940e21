#ifndef HONE_TESTS_BENCH_TABLE_MARKDOWN_H_
#define HONE_TESTS_BENCH_TABLE_MARKDOWN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tests/bench/table/results.h"

namespace hone::bench {

// Returns the page for readers: a summary by groups of operators (geometric mean and worst ratio to
// the fastest library), every kernel, the cost of candidates, and `notes` unchanged. Several
// kernels of one operator and number of threads count once, by the fastest.
std::string ToMarkdown(const Results& results, absl::string_view notes);

}  // namespace hone::bench

#endif  // HONE_TESTS_BENCH_TABLE_MARKDOWN_H_
