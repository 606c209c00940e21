#include "server/service/reference_cache.h"

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

absl::Status ReferenceCache::Put(const std::string& name, std::string bytes) {
  HONE_RETURN_IF_ERROR(CheckReference(name, bytes));
  cache_.Put(name, std::move(bytes));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const std::string>> ReferenceCache::Get(const std::string& name) {
  if (auto bytes = cache_.Get(name); bytes != nullptr) return bytes;
  return absl::NotFoundError("no builder has sent the reference of this workload yet");
}

}  // namespace hone::service
