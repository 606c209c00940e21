#ifndef HONE_WORKER_BUILDER_BUILD_H_
#define HONE_WORKER_BUILDER_BUILD_H_

#include "common/record/record.h"

namespace hone::builder {

// Builds one candidate: reads the workload and the design space, replays the decisions, lowers,
// generates machine code, links, and writes the artifact as <artifact_dir>/<digest>. With
// `reference` set, builds the workload's reference kernel instead; space and decisions are then not
// looked at.
//
// Never fails as such. Outcomes: ok; invalid (a text does not parse, the space is of another
// workload, a decision or primitive is refused, the program exceeds a limit, or there is no code
// for it on the target); compile_error (code generation or the linker fails); device_lost (the
// artifact cannot be written). One call at a time; an endless or crashing compile is the caller's
// to survive.
record::BuildResponse Build(const record::BuildRequest& request);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_BUILD_H_
