#ifndef HONE_TESTS_ORACLE_REQUEST_H_
#define HONE_TESTS_ORACLE_REQUEST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::oracle {

// A line from the oracle's script: which computation to build, and how many kernels of it.
struct Request {
  // The computation. `text` holds the words of an operator ("matmul m=3 n=5 k=7"), a workload in
  // text form, or a trace file, with or without decisions.
  enum class Source { kOperator, kWorkload, kTrace };
  Source source = Source::kOperator;
  std::string text;

  std::string folder;     // must exist; kernels and the reference are written there
  uint64_t seed = 0;      // for all random choices
  int candidates = 0;     // number of random decisions in the design spaces
  int random_traces = 0;  // number of traces of random legal primitives
  int threads = 1;        // number of cores of the target
  std::string target;     // a name for target::TargetByName
  double tolerance = 0;   // tolerance of the job for a given trace
};

// InvalidArgument: not a JSON object, a field of the wrong type, an unknown field, or not exactly
// one source.
absl::StatusOr<Request> ParseRequest(absl::string_view line);

}  // namespace hone::oracle

#endif  // HONE_TESTS_ORACLE_REQUEST_H_
