#ifndef HONE_CLIENT_LIB_KERNEL_OBJECT_H_
#define HONE_CLIENT_LIB_KERNEL_OBJECT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::client {

// The object file of a kernel with its functions named PREFIX_run, PREFIX_prepack and so on instead
// of hone_kernel_run … (common/target/kernel_abi.h), so that one program can link several kernels.
// Code and data stay byte for byte what was measured: only the symbol table's names change.
// `prefix` is a C identifier. InvalidArgument: `object` is no relocatable ELF file of 64 bits, is
// truncated, or has no function of a kernel.
absl::StatusOr<std::string> RenameFunctions(absl::string_view object, absl::string_view prefix);

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_KERNEL_OBJECT_H_
