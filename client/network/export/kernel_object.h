#ifndef HONE_CLIENT_NETWORK_EXPORT_KERNEL_OBJECT_H_
#define HONE_CLIENT_NETWORK_EXPORT_KERNEL_OBJECT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::client {

// Renames the functions hone_kernel_run, hone_kernel_prepack and so on (common/target/kernel_abi.h)
// of a kernel's object file to PREFIX_run, PREFIX_prepack and so on, so that one program can link
// several kernels. Only names in the symbol table change; code and data stay exactly as measured.
// `prefix` is a C identifier. InvalidArgument: `object` is not a relocatable ELF file, is
// truncated, or contains no kernel function.
absl::StatusOr<std::string> RenameFunctions(absl::string_view object, absl::string_view prefix);

// Replaces the prefix of all global symbols that have it, defined or not. InvalidArgument: as
// above, but a file without such symbols stays as it is.
absl::StatusOr<std::string> RenameSymbols(absl::string_view object, absl::string_view old_prefix,
                                          absl::string_view new_prefix);

}  // namespace hone::client

#endif  // HONE_CLIENT_NETWORK_EXPORT_KERNEL_OBJECT_H_
