#ifndef HONE_COMMON_OPERATOR_TEXT_TEMPLATE_H_
#define HONE_COMMON_OPERATOR_TEXT_TEMPLATE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hone::op {

// What a name stands for: a template, such as "4", "f32" or "{(h - 3)/2 + 1}".
struct Definition {
  std::string text;
  std::vector<std::string> parameters = {};
};
using Definitions = std::map<std::string, Definition, std::less<>>;

// Adds "name = text" or "name(parameter, …) = text". Replaces an earlier definition.
void Define(absl::string_view definition, Definitions& definitions);

// The number of an expression: names that stand for numbers, numbers, + - * / % < <= == ( ) and
// sqrt. A comparison is 1 or 0. As in the indices of workloads, `/` rounds down and `%` is the
// remainder, but 1.0/n is not rounded. Computed in double: exact up to 2^53, beyond which only the
// magnitude matters.
double Evaluate(absl::string_view expression, const Definitions& definitions);

// Expands the parts of a text that are in braces, with the definitions as they are now:
//   {name}, {name(text, …)}  what the name stands for
//   {expression}             a number
//   {expression ? text}      the text, expanded, if the number is not 0
// If an optional item of a list is left out, so is its comma, or the word "where" if it was the
// only one: "sum(r: 3 where {a ? i < 4}, {b ? j < 4})".
//
// Templates are a part of the program, so all of these functions abort if one is malformed.
std::string Expand(absl::string_view text, const Definitions& definitions);

}  // namespace hone::op

#endif  // HONE_COMMON_OPERATOR_TEXT_TEMPLATE_H_
