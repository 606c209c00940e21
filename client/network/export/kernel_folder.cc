#include "client/network/export/kernel_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"

namespace hone::client {
namespace {

// Whether a key only serves as the default of other keys.
bool IsOnlyDefault(const op::OperatorInfo& info, const std::string& key) {
  for (const auto* tensors : {&info.inputs, &info.outputs}) {
    for (const op::TensorInfo& tensor : *tensors) {
      const std::vector<absl::string_view> dimensions = absl::StrSplit(tensor.layout, ' ');
      if (absl::c_linear_search(dimensions, key)) return false;
    }
  }
  return absl::c_any_of(info.keys, [&](const auto& other) { return other.default_key == key; });
}

lookup::Defaults DefaultsOf(const op::OperatorInfo& info) {
  lookup::Defaults defaults;
  for (const op::KeyInfo& key : info.keys) {
    lookup::DefaultKey entry{.name = key.name, .only_default = IsOnlyDefault(info, key.name)};
    if (key.default_value >= 0) {
      entry.value = absl::StrCat(key.default_value);
    } else if (!key.default_key.empty()) {
      entry.value = absl::StrCat("@", key.default_key);
    }
    if (entry.only_default || !entry.value.empty()) defaults.push_back(std::move(entry));
  }
  if (info.types != op::Types::kFixed) {
    defaults.push_back({"dtype", std::string(ir::DTypeName(ir::DType::kF32))});
    defaults.push_back({"acc", "@dtype"});
  }
  return defaults;
}

lookup::Buffer BufferOf(const ir::Tensor& tensor) {
  lookup::Buffer buffer;
  buffer.role = tensor.output     ? lookup::Role::kOutput
                : tensor.constant ? lookup::Role::kConstant
                                  : lookup::Role::kInput;
  buffer.name = tensor.name;
  buffer.dtype = std::string(ir::DTypeName(tensor.dtype));
  buffer.bytes = tensor.bytes();
  buffer.shape.assign(tensor.shape.begin(), tensor.shape.end());
  return buffer;
}

bool SameTask(const lookup::Kernel& a, const lookup::Kernel& b) {
  return a.workload == b.workload && a.target == b.target && a.tolerance == b.tolerance;
}

void Insert(lookup::Kernel kernel, lookup::Index& index) {
  for (lookup::Kernel& other : index.kernels) {
    // A name belongs to the workload that was exported under it last.
    if (other.workload != kernel.workload) {
      for (const std::string& name : kernel.names) std::erase(other.names, name);
    }
  }
  const auto replaced = std::find_if(index.kernels.begin(), index.kernels.end(),
                                     [&](const auto& other) { return SameTask(other, kernel); });
  if (replaced == index.kernels.end()) {
    index.kernels.push_back(std::move(kernel));
    return;
  }
  // Keep the other names of the workload.
  for (const std::string& name : replaced->names) {
    if (std::find(kernel.names.begin(), kernel.names.end(), name) == kernel.names.end()) {
      kernel.names.push_back(name);
    }
  }
  *replaced = std::move(kernel);
}

}  // namespace

absl::Status KernelFolder::Add(const FolderKernel& kernel) {
  lookup::Kernel entry;
  entry.checksum = lookup::Checksum(kernel.shared_object);
  const std::string path = lookup::SharedObjectPath(folder_, entry.checksum);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot make the folder of ", path));
  std::string written;
  if (!lookup::ReadFile(path, written) || written != kernel.shared_object) {
    HONE_RETURN_IF_ERROR(WriteFileAtomically(path, kernel.shared_object));
  }

  for (const std::string& name : kernel.names) {
    const std::string first = name.substr(0, name.find(' '));
    if (const op::OperatorInfo* info = op::FindOperator(first); info != nullptr) {
      added_.defaults[first] = DefaultsOf(*info);
    }
    // A malformed name, such as "matmul k= 4", cannot be looked up.
    std::string canonical = lookup::Canonical(name, added_.defaults);
    if (!canonical.empty()) entry.names.push_back(std::move(canonical));
  }
  entry.workload = kernel.workload.StructuralDigest().ToHex();
  entry.target = kernel.target.Key();
  entry.arch = kernel.target.arch;
  entry.features = kernel.target.features;
  entry.tolerance = kernel.tolerance;
  entry.latency_ns = kernel.latency_ns;
  entry.gflops = kernel.gflops;
  for (const auto& ids : {kernel.workload.Inputs(), kernel.workload.Outputs()}) {
    for (const ir::BufferId id : ids) {
      entry.buffers.push_back(BufferOf(kernel.workload.tensors[id]));
    }
  }
  Insert(std::move(entry), added_);
  return absl::OkStatus();
}

absl::StatusOr<lookup::Index> KernelFolder::ReadIndex() const {
  const std::string path = lookup::IndexPath(folder_);
  lookup::Index index;
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  std::string error;
  if (text.ok() && !lookup::Parse(*text, index, error)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": ", error, "; delete ", std::filesystem::path(path).parent_path().string(),
        " and export its kernels again"));
  }
  return index;
}

absl::Status KernelFolder::Check(const FolderKernel& kernel, bool overwrite) const {
  HONE_ASSIGN_OR_RETURN(const lookup::Index index, ReadIndex());
  const std::string digest = kernel.workload.StructuralDigest().ToHex();
  for (const lookup::Kernel& other : index.kernels) {
    if (overwrite || other.workload == digest) continue;
    for (const std::string& name : kernel.names) {
      // An operator with its keys means the same workload in every version of Hone but for changes
      // of the operator, and then the new one is meant.
      if (absl::StrContains(name, ' ') || !absl::c_linear_search(other.names, name)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "programs that look up ", name, " in ", folder_, " find another workload, ",
          other.names.size() > 1 ? other.names[other.names[0] == name ? 1 : 0] : other.workload));
    }
  }
  return absl::OkStatus();
}

absl::Status KernelFolder::Commit() {
  const std::string path = lookup::IndexPath(folder_);
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const int lock = open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0) return ErrnoStatus(errno, absl::StrCat("open ", parent));
  const auto unlock = absl::MakeCleanup([lock] { close(lock); });
  if (flock(lock, LOCK_EX) != 0) return ErrnoStatus(errno, absl::StrCat("lock ", parent));

  HONE_ASSIGN_OR_RETURN(lookup::Index index, ReadIndex());
  for (const auto& [name, defaults] : added_.defaults) index.defaults[name] = defaults;
  for (lookup::Kernel& kernel : added_.kernels) Insert(std::move(kernel), index);
  added_ = {};
  return WriteFileAtomically(path, lookup::Print(index));
}

}  // namespace hone::client
