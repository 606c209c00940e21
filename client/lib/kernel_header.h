#ifndef HONE_CLIENT_LIB_KERNEL_HEADER_H_
#define HONE_CLIENT_LIB_KERNEL_HEADER_H_

#include <string>

#include "common/ir/workload.h"

namespace hone::client {

// The facts about a kernel that its header states in addition to the workload.
struct KernelFacts {
  std::string name;       // C identifier; prefixes the macros
  std::string functions;  // C identifier; the prefix of the object's functions, without the '_';
                          // "": "hone_kernel"
  std::string target_key;
  std::string cpu_features;  // required CPU features, human-readable
  double latency_ns = 0;     // 0: unknown
  double gflops = 0;
};

// A C and C++ header for a kernel that follows common/target/kernel_abi.h. It declares the
// functions, defines the type, shape, strides, size and index of every buffer and the alignment,
// and shows a complete call in a comment.
std::string KernelHeader(const ir::Workload& workload, const KernelFacts& facts);

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_KERNEL_HEADER_H_
