#ifndef HONE_CLIENT_NETWORK_EXPORT_PROGRAM_OBJECT_H_
#define HONE_CLIENT_NETWORK_EXPORT_PROGRAM_OBJECT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hone::network {

// Makes an object file, without a compiler, that defines the program of a network
// (runtime/hone_program.h) as the symbol `name`: the bytes of its plan, and a table with the
// functions PREFIX_abi, PREFIX_workspace_bytes, PREFIX_packed_bytes and PREFIX_run of each kernel
// of a CPU. Other objects define these and the symbol `backend`. The object is for this machine's
// architecture.
std::string ProgramObject(absl::string_view name, absl::string_view plan, absl::string_view backend,
                          const std::vector<std::string>& kernel_prefixes);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_EXPORT_PROGRAM_OBJECT_H_
