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

// An argument of a primitive. A named argument is written name=value, after the others.
struct Argument {
  enum class Kind : uint8_t { kBlock, kLoop, kBlockOrLoop, kNumber, kString, kNamed, kNamedList };
  enum class Count : uint8_t { kOne, kOptional, kMany };  // kMany: any number, of the last argument
  Kind kind;
  absl::string_view name;
  absl::string_view meaning = "";  // "" if the name is clear
  Count count = Count::kOne;

  bool IsNamed() const { return kind == Kind::kNamed || kind == Kind::kNamedList; }
};
// "a block", "a string in quotes".
absl::string_view KindText(Argument::Kind kind);

// A program transformation or a sampling of decisions, as an entry of the registry.
struct Primitive {
  absl::string_view name;
  int version;  // incremented when the same arguments give a different program
  // Results in order: 'b' block, 'l' loop, 'i' number. '*' means any number of results like the
  // last one.
  absl::string_view results;
  bool samples;  // draws decisions
  // Reads the operands from the call, applies the primitive and returns the results to the call. On
  // error the program is unchanged, unless only the number of named results is wrong.
  absl::Status (*apply)(Call& call);
  absl::string_view meaning;  // one line
  std::vector<Argument> arguments;

  // The argument that describes operand `i`, counted from 0; nullptr if there are fewer.
  const Argument* ArgumentOf(size_t i) const;
  // The smallest number of operands.
  size_t LeastOperands() const;
  // "block = cache_read(block, "buffer", "scope")".
  std::string Usage() const;
};

// All primitives, sorted by name. README.md says how to add one.
absl::Span<const Primitive> Primitives();
// nullptr if there is no primitive of that name.
const Primitive* FindPrimitive(absl::string_view name);
// The end of an error about an unknown primitive: the nearest one, or else a list of all.
std::string KnownPrimitives(absl::string_view unknown);

// A legality error: states the problem and prints the program with the node marked.
absl::Status Illegal(const ir::Program& program, ir::NodeId node, absl::string_view what);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_H_
