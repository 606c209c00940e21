#ifndef HONE_SERVER_TUNER_SPACE_MAKER_H_
#define HONE_SERVER_TUNER_SPACE_MAKER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"
#include "common/target/target.h"
#include "server/tuner/space/design_space.h"
#include "server/tuner/space/generate.h"

namespace hone::space {

// Makes a design space from a handwritten trace file. Open samplings are searched; if all of them
// are decided, the space has only that candidate (DesignSpace::only). The file's workload must be
// the tuned workload, apart from names. InvalidArgument: errors of ParseTraceFile ("line:column:
// …"), another workload, or a trace that does not replay; the message prints the program with the
// loop marked.
absl::StatusOr<std::unique_ptr<DesignSpace>> GivenTraceSpace(const ir::Workload& workload,
                                                             absl::string_view text);

// The inputs for making design spaces.
struct SpaceRequest {
  std::shared_ptr<const ir::Workload> workload;
  const target::Target* target = nullptr;
  // The tolerance is the job's: algorithms that need a larger one (common/schedule/rewrite) are
  // left out.
  Generation generation;
};

// A registered way to make design spaces for a workload. Stateless, thread-safe, deterministic.
struct SpaceMaker {
  absl::string_view name;
  // Checks in microseconds whether the maker has spaces for the workload on some target.
  // InvalidArgument: it has none; the message lists what it supports.
  absl::Status (*check)(const ir::Workload& workload);
  // Returns at least one space; names and digests are distinct. InvalidArgument: as for check, or
  // no space has a schedule that replays.
  absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> (*make)(const SpaceRequest& request);
  absl::string_view meaning;  // one line
};

// All makers; the first one is the default.
absl::Span<const SpaceMaker> SpaceMakers();
// Adds a maker after the others. REQUIRES: there is no maker of that name, and no other thread uses
// the list.
void RegisterSpaceMaker(const SpaceMaker& maker);

// Whether a job's `space` is the text of a trace file: it has several lines.
bool IsTraceText(absl::string_view space);
// Checks a job's `space`: "" for the default, the name of a maker, or a trace file
// if it has several lines. InvalidArgument: unknown maker (the message lists the names), the maker
// has no space for the workload, or an error of GivenTraceSpace.
absl::Status CheckSpaceArgument(const ir::Workload& workload, absl::string_view space);
// Makes the spaces of such an argument. Errors as above; also InvalidArgument if the workload
// computes in f64 and the target does not.
absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> MakeSpaces(const SpaceRequest& request,
                                                                     absl::string_view space);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_MAKER_H_
