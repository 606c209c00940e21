#ifndef HONE_CLIENT_NETWORK_EXPORT_EXPORT_H_
#define HONE_CLIENT_NETWORK_EXPORT_EXPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/network/export/export_folder.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/partition.h"
#include "client/network/plan/network_kernel.h"
#include "client/network/plan/plan.h"

namespace hone::network {

struct ExportOptions {
  std::string folder;            // created if it does not exist
  std::string name = "network";  // a C identifier; names the files and prefixes the functions
  std::string program_dir;       // the folder of Hone's programs; "": that of this program
  // What is exported, to be compared with what the folder has. ExportNetwork sets the name, the
  // kind and the numbers of kernels.
  client::ExportFacts facts = {};
  // ONNX models of the nodes that run on the host, by the size of the network, or one at 0 for all
  // sizes; empty: there are none.
  std::map<int64_t, std::string> tails = {};
  bool overwrite = false;  // see client::ExportFolder
};

using client::ExportedFile;

// InvalidArgument, with what to do: files, functions or types of an export cannot have this name.
absl::Status CheckExportName(const std::string& name);
// The facts of an export of these kernels. A kernel that several sizes use counts once for each.
client::ExportFacts FactsOf(const ExportOptions& options, absl::Span<const NetworkOfSize> sizes);
// The file in an export with the nodes that run on the host, for a size of the network or 0.
std::string TailFile(const std::string& name, int64_t size);
// The files of an export.
std::vector<std::string> FilesOfNetwork(const ExportOptions& options);

// Writes a network: libNAME.so with all kernels, the runtime and the plan; NAME.weights with the
// constants, for a CPU packed as the kernels need them (a GPU packs them itself, so that an export
// needs none); NAME.h, NAME.hpp and NAME.py, the interfaces for C, C++ and Python;
// and, if nodes run on the host, NAME.tail.onnx with these, or NAME.tail.SIZE.onnx for each size.
//
// Writes all files or none. Files of an earlier export are replaced at the end, by renaming.
// `sizes`: see JoinPlans; `dimension` is what is open. The kernels are all for one target; those of
// a CPU have their object files. InvalidArgument: an object file is missing, the linker refuses
// one, CheckExportName refuses the name, or the folder has files that client::ExportFolder does not
// replace. FailedPrecondition: hone-builder, which links, is not installed. ResourceExhausted,
// PermissionDenied: the files cannot be written. Other errors are those of JoinPlans and
// WriteWeights.
absl::StatusOr<std::vector<ExportedFile>> ExportNetwork(const std::string& dimension,
                                                        absl::Span<const NetworkOfSize> sizes,
                                                        const ExportOptions& options);
// The same for a network whose shapes are fixed.
absl::StatusOr<std::vector<ExportedFile>> ExportNetwork(const graph::Graph& graph,
                                                        const graph::Partition& partition,
                                                        absl::Span<const NetworkKernel> kernels,
                                                        const ExportOptions& options);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_EXPORT_EXPORT_H_
