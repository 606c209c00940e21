#ifndef HONE_SERVER_SPACE_MAKER_H_
#define HONE_SERVER_SPACE_MAKER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"
#include "common/target/target.h"
#include "server/space/design_space.h"

namespace hone::space {

// What a job wants spaces for.
struct SpaceRequest {
  std::shared_ptr<const ir::Workload> workload;
  const target::Target* target = nullptr;
  // Of the job: algorithms that need a larger one (common/schedule/rewrite) are left out.
  double tolerance = 0;
};

// A registered way from a workload to design spaces. Stateless, thread-safe, deterministic.
struct SpaceMaker {
  absl::string_view name;
  // Whether it has spaces for the workload on some target; a matter of microseconds.
  // InvalidArgument: it has not; the message says for what it has.
  absl::Status (*check)(const ir::Workload& workload);
  // At least one space, names and digests all different. InvalidArgument: as of check, or no space
  // has a schedule that replays.
  absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> (*make)(const SpaceRequest& request);
  absl::string_view meaning;  // one line
};

// Every maker; the first one is the default. To add one: a line in maker.cc.
absl::Span<const SpaceMaker> SpaceMakers();

// Whether a job's `space` is the text of a trace file: it has several lines, names have one.
bool IsTraceText(absl::string_view space);
// What a job's `space` names: the default for "", a maker by its name, or a trace file
// (given_trace.h) when the text has several lines. InvalidArgument: no maker has the name (the
// message lists what there is), it has no space for the workload, or everything that
// GivenTraceSpace refuses.
absl::Status CheckSpaceArgument(const ir::Workload& workload, absl::string_view space);
absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> MakeSpaces(const SpaceRequest& request,
                                                                     absl::string_view space);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_MAKER_H_
