#ifndef HONE_WORKER_CODEGEN_C_C_NAMES_H_
#define HONE_WORKER_CODEGEN_C_C_NAMES_H_

#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace hone::codegen {

// Identifiers of a scope of the printed text: each is unique, and none is a word of C, OpenCL C or
// CUDA C++, or a function or macro that the text may use.
class CNames {
 public:
  // An identifier that resembles `wish`: other characters than letters and digits become '_', and
  // a name that is taken gets a number.
  std::string Add(absl::string_view wish);
  // The name may be used again, as that of a variable whose scope has ended.
  void Remove(const std::string& name) { used_.erase(name); }

 private:
  std::set<std::string> used_;
};

// Whether an identifier has a meaning of its own in one of the dialects.
bool IsReservedInC(absl::string_view name);

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_C_C_NAMES_H_
