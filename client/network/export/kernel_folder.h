#ifndef HONE_CLIENT_NETWORK_EXPORT_KERNEL_FOLDER_H_
#define HONE_CLIENT_NETWORK_EXPORT_KERNEL_FOLDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/lookup/kernel_index.h"
#include "common/ir/workload.h"
#include "common/target/target.h"

namespace hone::client {

// A kernel for a folder.
struct FolderKernel {
  std::vector<std::string> names;  // for look-ups: an operator with its keys, or one word
  ir::Workload workload;
  target::Target target;
  std::string shared_object;
  double tolerance = 0;
  double latency_ns = 0;
  double gflops = 0;
};

// Adds kernels to a folder that programs read with libhone_lookup (client/lookup). A kernel
// replaces an earlier one of the same workload, target and tolerance. Several processes may add to
// a folder at the same time. Files of replaced kernels stay, because a program may be about to load
// them.
class KernelFolder {
 public:
  explicit KernelFolder(std::string folder) : folder_(std::move(folder)) {}

  // Writes the kernel's shared object. Errors as for WriteFileAtomically.
  absl::Status Add(const FolderKernel& kernel);
  bool IsEmpty() const { return added_.kernels.empty(); }
  // Asks whether a kernel may be added to the index. InvalidArgument: a name that the user chose,
  // such as that of a file, already finds another workload, and `overwrite` is false.
  // FailedPrecondition: as for Commit.
  absl::Status Check(const FolderKernel& kernel, bool overwrite) const;
  // Adds the kernels to the index in one step. FailedPrecondition: the folder has an index that
  // cannot be read. Other errors as for WriteFileAtomically.
  absl::Status Commit();

 private:
  // The index of the folder; empty if there is none.
  absl::StatusOr<lookup::Index> ReadIndex() const;

  const std::string folder_;
  lookup::Index added_;
};

}  // namespace hone::client

#endif  // HONE_CLIENT_NETWORK_EXPORT_KERNEL_FOLDER_H_
