#ifndef HONE_CLIENT_NETWORK_EXPORT_GPU_EXPORT_H_
#define HONE_CLIENT_NETWORK_EXPORT_GPU_EXPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/network/graph/graph.h"
#include "client/network/plan/make_plan.h"
#include "client/network/plan/network_kernel.h"

namespace hone::network {

// The folder of the kernels of an exported network.
std::string GpuKernelFolder(const std::string& name);

// Writes the files of a network for a GPU (export.h) to a folder that exists. Returns their names,
// those of the kernels first. The name of a kernel contains a hash of its code, so that the kernels
// of two exports can be in one folder.
// Errors are those of ExportNetwork; InvalidArgument: the sources of a CUDA kernel are missing.
absl::StatusOr<std::vector<std::string>> WriteGpuFiles(const PlannedNetwork& planned,
                                                       const graph::Graph& graph,
                                                       absl::Span<const NetworkKernel> kernels,
                                                       const std::string& name,
                                                       const std::string& folder);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_EXPORT_GPU_EXPORT_H_
