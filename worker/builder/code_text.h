#ifndef HONE_WORKER_BUILDER_CODE_TEXT_H_
#define HONE_WORKER_BUILDER_CODE_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::builder {

// Returns the code that Build would make of a schedule as text: assembly, or the source for targets
// that compile it themselves. `trace` is the text of a trace file with decisions. InvalidArgument:
// the trace is malformed, has open decisions or does not replay, or the code would exceed a limit.
// Unimplemented: the target has no code for the program. Internal: a bug of the code generator.
absl::StatusOr<std::string> CodeText(absl::string_view trace, const target::Target& target);

// Parses a target: a preset's name, "native" (target::TargetByName), or a target's text form.
// InvalidArgument: an unknown name (the message lists the names), or a malformed text.
absl::StatusOr<target::Target> ReadTarget(absl::string_view text);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_CODE_TEXT_H_
