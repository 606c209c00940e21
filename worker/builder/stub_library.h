#ifndef HONE_WORKER_BUILDER_STUB_LIBRARY_H_
#define HONE_WORKER_BUILDER_STUB_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::builder {

// A shared library that a kernel may call, as the linker sees it: its name and its functions,
// without code. With stubs the builder needs no host toolchain, and kernels for other machines link
// the same way.
struct StubLibrary {
  std::string soname;
  std::vector<std::string> functions;
};

// All known libraries: the OpenMP runtime, libc's memory functions (which the optimizer creates
// from loops) and libm.
const std::vector<StubLibrary>& KnownLibraries();

// Compiles an ELF object file for `triple` that defines the library's functions as empty functions.
// InvalidArgument: LLVM has no code generator for the triple.
absl::StatusOr<std::string> CompileStub(const StubLibrary& library, const std::string& triple);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_STUB_LIBRARY_H_
