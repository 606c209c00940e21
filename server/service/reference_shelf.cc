#include "server/service/reference_shelf.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/record/artifact.h"
#include "common/record/reference_name.h"
#include "common/target/target.h"

namespace hone::service {
namespace {

absl::Status CheckReference(const std::string& name, const std::string& bytes) {
  HONE_ASSIGN_OR_RETURN(const record::ReferenceName wanted, record::ParseReferenceName(name));
  HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, record::DecodeArtifact(bytes));
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(artifact.workload));
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(artifact.target));
  const record::ReferenceName is{workload.StructuralDigest().ToHex(), target.Key()};
  if (is == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it is ", is.ToText(), ", not ", name));
}

}  // namespace

bool ReferenceShelf::Has(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  return entries_.contains(name);
}

absl::Status ReferenceShelf::Put(const std::string& name, std::string bytes) {
  HONE_RETURN_IF_ERROR(CheckReference(name, bytes));
  auto kept = std::make_shared<const std::string>(std::move(bytes));
  absl::MutexLock lock(&mutex_);
  auto [entry, fresh] = entries_.try_emplace(name);
  if (fresh) {
    uses_.push_front(name);
    entry->second.use = uses_.begin();
  } else {
    // Of a newer compiler, perhaps.
    bytes_ -= static_cast<int64_t>(entry->second.bytes->size());
    uses_.splice(uses_.begin(), uses_, entry->second.use);
  }
  bytes_ += static_cast<int64_t>(kept->size());
  entry->second.bytes = std::move(kept);
  while ((bytes_ > max_bytes_ || uses_.size() > max_names_) && uses_.size() > 1) {
    auto oldest = entries_.find(uses_.back());
    bytes_ -= static_cast<int64_t>(oldest->second.bytes->size());
    entries_.erase(oldest);
    uses_.pop_back();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const std::string>> ReferenceShelf::Get(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    return absl::NotFoundError(absl::StrCat("no builder has sent ", name));
  }
  uses_.splice(uses_.begin(), uses_, found->second.use);
  return found->second.bytes;
}

}  // namespace hone::service
