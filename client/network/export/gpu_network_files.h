#ifndef HONE_CLIENT_NETWORK_EXPORT_GPU_NETWORK_FILES_H_
#define HONE_CLIENT_NETWORK_EXPORT_GPU_NETWORK_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/network/plan/gpu_plan.h"
#include "client/network/plan/network_kernel.h"
#include "client/network/plan/plan.h"
#include "common/base/digest.h"

namespace hone::network {

// A network for GPUs as the texts of its exported files describe it.
struct GpuNetworkFacts {
  std::string name;  // a C identifier
  const Plan* plan = nullptr;
  const GpuPlan* gpu_plan = nullptr;
  absl::Span<const NetworkKernel> kernels;
  std::vector<std::string> modules;  // the file of each kernel, relative to the folder
  std::vector<int64_t> weights_at;   // of each buffer: its content in the weights file; -1: none
  int64_t weights_bytes = 0;         // of the weights file
  Digest weights;                    // the id in its header
};

// NAME.json: the buffers, parts and commands, for programs in any language.
std::string GpuNetworkJson(const GpuNetworkFacts& facts);

// NAME.h: the same as C tables.
std::string GpuNetworkHeader(const GpuNetworkFacts& facts);

// NAME_host.c: a program in C that runs the network, with the tables of NAME.h.
std::string GpuNetworkHostProgram(const GpuNetworkFacts& facts);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_EXPORT_GPU_NETWORK_FILES_H_
