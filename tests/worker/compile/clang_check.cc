#include "tests/worker/compile/clang_check.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "tests/temporary_folder.h"

namespace hone::codegen {
namespace {

// Returns the name of an installed Clang, or "" if none is installed.
const std::string& Clang() {
  static const auto* const name = new std::string([] {
    for (const std::string candidate : {"clang-19", "clang-15", "clang-14", "clang"}) {
      const std::string command = absl::StrCat("command -v ", candidate, " >/dev/null 2>&1");
      if (std::system(command.c_str()) == 0) return candidate;
    }
    return std::string();
  }());
  return *name;
}

}  // namespace

bool HasClang() { return !Clang().empty(); }

std::string ClangErrors(absl::string_view text) {
  if (!HasClang()) return "";
  const TemporaryFolder folder;
  const std::string source = folder / "kernel.cl", log = folder / "log";
  std::string errors;
  if (!WriteFileAtomically(source, text, Durability::kProcess).ok())
    errors = "cannot write kernel.cl";
  const bool has_dots = absl::StrContains(text, "dot_4x8packed");
  const bool is_new = has_dots || absl::StrContains(text, "sub_group_shuffle");
  std::vector<std::string> targets = {"spir64-unknown-unknown"};
  if (!has_dots) targets.emplace_back("nvptx64-unknown-unknown");
  for (const std::string& target : targets) {
    // With -fdeclare-opencl-builtins, Clang declares built-in functions from a table, which is
    // faster than parsing the whole header.
    const std::string command = absl::StrCat(
        Clang(), " -cl-std=", is_new ? "CL3.0" : "CL1.2",
        " -Dcl_arm_integer_dot_product_accumulate_int8 -Dcl_khr_subgroup_shuffle"
        " -Wno-ignored-pragmas -x cl -fsyntax-only -Xclang -cl-ext=+cl_khr_fp16 -Xclang"
        " -finclude-default-header -Xclang -fdeclare-opencl-builtins -Wall -Wextra "
        "-Wno-unused-parameter -Werror --target=",
        target, " ", source, " >", log, " 2>&1");
    if (std::system(command.c_str()) != 0) {
      absl::StrAppend(&errors, text, "\n", target, ":\n", ReadFile(log).value_or("no message"));
    }
  }
  return errors;
}

}  // namespace hone::codegen
