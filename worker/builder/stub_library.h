#ifndef HONE_WORKER_BUILDER_STUB_LIBRARY_H_
#define HONE_WORKER_BUILDER_STUB_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::builder {

// A shared library that a kernel may call into, as the linker needs to see it: its name and its
// functions, without code. So no host toolchain is needed, and a kernel for another machine links
// like one for this.
struct StubLibrary {
  std::string soname;
  std::vector<std::string> functions;
};

// All of them: OpenMP's runtime, libc's memory functions (which the optimizer makes from loops) and
// libm.
const std::vector<StubLibrary>& KnownLibraries();

// The ELF object file, for `triple`, that defines the library's functions, each empty.
// InvalidArgument: LLVM has no code generator for the triple.
absl::StatusOr<std::string> CompileStub(const StubLibrary& library, const std::string& triple);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_STUB_LIBRARY_H_
