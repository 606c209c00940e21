#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/program.h"

namespace hone::schedule {

class Call;

// A program transformation or a sampling of decisions, as an entry of the registry.
struct Primitive {
  absl::string_view name;
  int version;  // incremented when the same arguments give a different program
  // Operands in order: 'b' block, 'l' loop, 'n' block or loop, 'i' number, 's' string. '*' repeats
  // the last one zero or more times.
  absl::string_view operands;
  // Results in order, with the same letters.
  absl::string_view results;
  bool samples;  // draws decisions
  // Reads the operands from the call, applies the primitive and returns the results to the call. On
  // error the program is unchanged.
  absl::Status (*apply)(Call& call);
  absl::string_view meaning;  // one line
};

// All primitives, sorted by name. README.md says how to add one.
absl::Span<const Primitive> Primitives();
// nullptr if there is no primitive of that name.
const Primitive* FindPrimitive(absl::string_view name);

// A legality error: states the problem and prints the program with the node marked.
absl::Status Illegal(const ir::Program& program, ir::NodeId node, absl::string_view what);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_H_
