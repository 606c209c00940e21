#ifndef HONE_WORKER_BUILDER_BUILD_H_
#define HONE_WORKER_BUILDER_BUILD_H_

#include "common/record/record.h"

namespace hone::builder {

// Builds one candidate: parses the workload and the design space, replays the decisions, lowers the
// program, generates machine code, links it, and writes the artifact as <artifact_dir>/<digest>. If
// `reference` is set, builds the workload's reference kernel instead and ignores space and
// decisions; if the target is a GPU, builds it for this machine's CPU.
//
// Reports every failure as an outcome: ok; invalid (a text does not parse, the space belongs to
// another workload, a decision or primitive is refused, the program exceeds a limit, or the target
// cannot run it); compile_error (code generation or the linker fails); device_lost (the artifact
// cannot be written). One call at a time. The caller must handle compiles that hang or crash.
record::BuildResponse Build(const record::BuildRequest& request);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_BUILD_H_
