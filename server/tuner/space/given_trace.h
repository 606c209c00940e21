#ifndef HONE_SERVER_TUNER_SPACE_GIVEN_TRACE_H_
#define HONE_SERVER_TUNER_SPACE_GIVEN_TRACE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/workload.h"
#include "server/tuner/space/design_space.h"

namespace hone::space {

// Makes a design space from a handwritten trace file. Open samplings are searched; if all of them
// are decided, the space has only that candidate (DesignSpace::only). The file's workload must be
// the tuned workload, apart from names. InvalidArgument: errors of ParseTraceFile ("line:column:
// …"), another workload, or a trace that does not replay; the message prints the program with the
// loop marked.
absl::StatusOr<std::unique_ptr<DesignSpace>> GivenTraceSpace(const ir::Workload& workload,
                                                             absl::string_view text);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_GIVEN_TRACE_H_
