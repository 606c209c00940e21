#ifndef HONE_CLIENT_LIB_KERNEL_PROGRAM_H_
#define HONE_CLIENT_LIB_KERNEL_PROGRAM_H_

#include <string>

#include "client/lib/kernel_header.h"
#include "common/ir/workload.h"

namespace hone::client {

// A C program that calls an exported kernel: it fills the inputs, packs the constants, runs the
// kernel on Hone's threads, and prints its time. `facts.functions` is not empty.
std::string KernelExample(const ir::Workload& workload, const KernelFacts& facts);

// A Python module with a class Kernel, which calls an exported kernel on NumPy arrays. It loads
// libNAME.so beside it, whose functions begin with NAME_, and which has the threads as NAME_pool.
std::string KernelModule(const ir::Workload& workload, const KernelFacts& facts);

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_KERNEL_PROGRAM_H_
