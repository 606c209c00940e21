#ifndef HONE_WORKER_BUILDER_SOURCE_H_
#define HONE_WORKER_BUILDER_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::builder {

// A program to build and its origin.
struct Source {
  std::shared_ptr<const ir::Workload> workload;
  ir::Program program;
  std::string trace;  // text form with decisions
};

// Replays a trace file with these decisions. InvalidArgument: a primitive refuses, with any status:
// the trace is wrong.
absl::StatusOr<Source> ReplayFile(schedule::TraceFile file, absl::Span<const int64_t> decisions);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_SOURCE_H_
