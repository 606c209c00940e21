#include "common/schedule/primitive.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"

namespace hone::schedule {
namespace {

using Count = Argument::Count;
using Kind = Argument::Kind;

std::string ArgumentUsage(const Argument& argument) {
  std::string text = argument.kind == Kind::kString      ? absl::StrCat("\"", argument.name, "\"")
                     : argument.kind == Kind::kNamed     ? absl::StrCat(argument.name, "=n")
                     : argument.kind == Kind::kNamedList ? absl::StrCat(argument.name, "=[n, …]")
                                                         : std::string(argument.name);
  if (argument.count == Count::kOptional) return absl::StrCat("[", text, "]");
  return argument.count == Count::kMany ? absl::StrCat(text, ", …") : text;
}

absl::string_view ResultText(char letter) {
  return letter == 'b' ? "block" : letter == 'l' ? "loop" : letter == 'i' ? "number" : "…";
}

}  // namespace

absl::string_view KindText(Kind kind) {
  switch (kind) {
    case Kind::kBlock:
      return "a block";
    case Kind::kLoop:
      return "a loop";
    case Kind::kBlockOrLoop:
      return "a block or a loop";
    case Kind::kNumber:
      return "a number";
    case Kind::kString:
      return "a string in quotes";
    case Kind::kNamed:
      return "a literal number";
    case Kind::kNamedList:
      return "a list of literal numbers";
  }
  return "";
}

const Argument* Primitive::ArgumentOf(size_t i) const {
  const auto named =
      absl::c_find_if(arguments, [](const Argument& argument) { return argument.IsNamed(); });
  const auto count = static_cast<size_t>(named - arguments.begin());
  if (count == 0) return nullptr;
  if (arguments[count - 1].count == Count::kMany) i = std::min(i, count - 1);
  return i < count ? &arguments[i] : nullptr;
}

size_t Primitive::LeastOperands() const {
  return static_cast<size_t>(absl::c_count_if(arguments, [](const Argument& argument) {
    return argument.count == Count::kOne && !argument.IsNamed();
  }));
}

std::string Primitive::Usage() const {
  const std::string given = absl::StrJoin(results, ", ", [](std::string* out, char letter) {
    absl::StrAppend(out, ResultText(letter));
  });
  const std::string taken = absl::StrJoin(
      arguments, ", ",
      [](std::string* out, const Argument& argument) { *out += ArgumentUsage(argument); });
  return absl::StrCat(given, given.empty() ? "" : " = ", name, "(", taken, ")");
}

std::string KnownPrimitives(absl::string_view unknown) {
  std::vector<std::string> names;
  for (const Primitive& primitive : Primitives()) names.emplace_back(primitive.name);
  const std::string nearest = DidYouMean(unknown, names);
  return nearest.empty() ? absl::StrCat("; the primitives are ", absl::StrJoin(names, ", "))
                         : nearest;
}

absl::Status Illegal(const ir::Program& program, ir::NodeId node, absl::string_view what) {
  const ir::Node& at = program.node(node);
  const std::string name =
      at.kind == ir::Node::Kind::kLoop    ? absl::StrCat("loop ", program.atoms[at.var].name)
      : at.kind == ir::Node::Kind::kBlock ? absl::StrCat("block ", program.BlockOf(node).name)
                                          : "";
  return absl::FailedPreconditionError(absl::StrCat(what, " (", name, ")\n", program.ToText(node)));
}

}  // namespace hone::schedule
