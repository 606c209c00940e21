#ifndef HONE_WORKER_COMPILE_C_C_NAMES_H_
#define HONE_WORKER_COMPILE_C_C_NAMES_H_

#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace hone::codegen {

// The identifiers in a scope of the printed text. Each is unique, and none is a keyword of C,
// OpenCL C or CUDA C++, or a function or macro that the text may use.
class CNames {
 public:
  // Adds an identifier that resembles `wish` and returns it. Characters other than letters and
  // digits become '_', and a name that is taken gets a number.
  std::string Add(absl::string_view wish);
  // Makes a name available again, because the scope of its variable has ended.
  void Remove(const std::string& name) { used_.erase(name); }

 private:
  std::set<std::string> used_;
};

// Returns whether an identifier has a predefined meaning in one of the dialects.
bool IsReservedInC(absl::string_view name);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_NAMES_H_
