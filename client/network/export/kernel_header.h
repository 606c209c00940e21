#ifndef HONE_CLIENT_NETWORK_EXPORT_KERNEL_HEADER_H_
#define HONE_CLIENT_NETWORK_EXPORT_KERNEL_HEADER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ir/program.h"
#include "common/ir/workload.h"

namespace hone::client {

// The facts about a kernel that its header states in addition to the workload.
struct KernelFacts {
  std::string name;  // C identifier; the prefix of the object's functions (NAME_run) and of macros
  std::string target_key;
  std::string cpu_features;  // required CPU features, human-readable
  double latency_ns = 0;     // 0: unknown
  double gflops = 0;
  // Whether run reads each input (record::InputsRead); empty: it may read all.
  std::vector<bool> reads;
  // Whether the pointers of inputs that run does not read may be null (target::kUsesSymbol).
  bool accepts_null = false;
};

// A C and C++ header for a kernel that follows common/target/kernel_abi.h. It declares the
// functions, defines the type, shape, strides, size and index of every buffer and the alignment,
// and shows a complete call in a comment.
std::string KernelHeader(const ir::Workload& workload, const KernelFacts& facts);

// A C program that calls an exported kernel: it fills the inputs, packs the constants, runs the
// kernel on Hone's threads, and prints its time.
std::string KernelExample(const ir::Workload& workload, const KernelFacts& facts);

// A Python module with a class Kernel, which calls an exported kernel on NumPy arrays. It loads
// libNAME.so beside it, whose functions begin with NAME_, and which has the threads as NAME_pool.
std::string KernelModule(const ir::Workload& workload, const KernelFacts& facts);

}  // namespace hone::client

#endif  // HONE_CLIENT_NETWORK_EXPORT_KERNEL_HEADER_H_
