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

// A transformation of a program, or a sampling of decisions, as the trace knows it. An entry of the
// registry.
struct Primitive {
  absl::string_view name;
  int version;  // raised when the same arguments come to mean another program
  // Operands in order, for checking and for people: 'b' block, 'l' loop, 'n' block or loop, 'i'
  // number, 's' string; '*' repeats the last, which may then be missing.
  absl::string_view operands;
  // Results in order, in the same letters.
  absl::string_view results;
  bool samples;  // draws decisions
  // Reads the operands from the call, applies, and returns the results to it. On error the program
  // is unchanged.
  absl::Status (*apply)(Call& call);
  absl::string_view meaning;  // one line
};

// Every primitive, sorted by name. To add one: a file in primitive/ and a line in registry.cc.
absl::Span<const Primitive> Primitives();
// nullptr when there is none.
const Primitive* FindPrimitive(absl::string_view name);

// A legality error: says what is wrong and prints the program with the node marked.
absl::Status Illegal(const ir::Program& program, ir::NodeId node, absl::string_view what);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_H_
