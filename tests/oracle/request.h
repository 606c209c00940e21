#ifndef HONE_TESTS_ORACLE_REQUEST_H_
#define HONE_TESTS_ORACLE_REQUEST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::oracle {

// One line that the oracle's script sends: which computation to build, and how many kernels of it.
struct Request {
  // What is to be computed. `text` is the words of an operator ("matmul m=3 n=5 k=7"), a workload
  // in text form, or a trace file whose decisions may be open.
  enum class Source { kOperator, kWorkload, kTrace };
  Source source = Source::kOperator;
  std::string text;

  std::string folder;     // exists; kernels and the reference are written there
  uint64_t seed = 0;      // of every random choice
  int candidates = 0;     // random decisions in the design spaces
  int random_traces = 0;  // random legal primitives, without a design space
  int threads = 1;        // cores of the target that kernels are built for
  std::string target;     // a name as of target::TargetByName
  double tolerance = 0;   // of the job that a given trace is for
};

// InvalidArgument: not a JSON object, a field has the wrong type or an unknown name, or not exactly
// one source is given.
absl::StatusOr<Request> ParseRequest(absl::string_view line);

}  // namespace hone::oracle

#endif  // HONE_TESTS_ORACLE_REQUEST_H_
