#ifndef HONE_CLIENT_LIB_KERNEL_HEADER_H_
#define HONE_CLIENT_LIB_KERNEL_HEADER_H_

#include <string>

#include "common/ir/workload.h"
#include "common/target/target.h"

namespace hone::client {

// What the header says of one kernel beside its workload.
struct KernelFacts {
  std::string name;       // C identifier; prefixes the macros
  std::string functions;  // C identifier that the object's functions begin with, before a '_';
                          // empty: "hone_kernel"
  std::string target_key;
  std::string cpu_features;     // that the kernel asks the CPU for, for a person
  int64_t workspace_bytes = 0;  // as the builder reported; the kernel's own function is what counts
  double latency_ns = 0;        // 0 unknown
  double gflops = 0;
};

// A C header (also good for C++) for a kernel that follows common/target/kernel_abi.h: its
// functions, and of every buffer dtype, shape, strides, size and place in the array of buffers;
// alignment, workspace, packed constants, and a complete example of a call.
std::string KernelHeader(const ir::Workload& workload, const KernelFacts& facts);

// A C identifier from any text: other characters become '_', a digit in front gets one.
std::string CIdentifier(absl::string_view text);

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_KERNEL_HEADER_H_
