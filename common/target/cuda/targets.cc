#include "common/target/cuda/targets.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/target/cuda/api.h"
#include "common/target/cuda/detect.h"
#include "common/target/target_resolver.h"

namespace hone::cuda {

absl::StatusOr<target::Target> TargetOf(absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const Api* const api, LoadedApi());
  HONE_ASSIGN_OR_RETURN(DeviceFacts facts, FindDevice(*api, name));
  return std::move(facts.target);
}

void AddTargets() { target::AddTargetResolver("cuda", TargetOf); }

}  // namespace hone::cuda
