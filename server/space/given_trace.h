#ifndef HONE_SERVER_SPACE_GIVEN_TRACE_H_
#define HONE_SERVER_SPACE_GIVEN_TRACE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/workload.h"
#include "server/space/design_space.h"

namespace hone::space {

// The maker beside the rules (generate.h): the design space that a person wrote as a trace file.
// Its open samplings are searched; where all of them are decided it is the space of that one
// candidate (DesignSpace::only). The file's workload must be the one that is tuned; names do not
// count. InvalidArgument: everything that ParseTraceFile refuses ("line:column: …"), another
// workload, or a trace that does not replay; the message prints the program with the loop marked.
absl::StatusOr<std::unique_ptr<DesignSpace>> GivenTraceSpace(const ir::Workload& workload,
                                                             absl::string_view text);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_GIVEN_TRACE_H_
