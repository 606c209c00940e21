#ifndef HONE_COMMON_OPERATOR_LIBRARY_H_
#define HONE_COMMON_OPERATOR_LIBRARY_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "common/operator/operator.h"

namespace hone::op {

// The definitions of all operators. README.md describes their form.
extern const char kMatrixOperators[];  // products of matrices, and what is made of them
extern const char kRowOperators[];     // element-wise, reductions, normalization, transposition
extern const char kImageOperators[];   // convolutions and pooling

// Reads definitions. Aborts if they are malformed.
std::vector<OperatorInfo> ReadOperators(absl::string_view text);

// What a statement of a workload or of its template declares. No names: it declares no tensors.
struct Declaration {
  bool input = false, output = false, constant = false;
  std::string type;  // of an input
  std::vector<std::string> names, extents;
};
Declaration ReadDeclaration(absl::string_view statement);

}  // namespace hone::op

#endif  // HONE_COMMON_OPERATOR_LIBRARY_H_
