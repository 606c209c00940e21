#ifndef HONE_COMMON_TARGET_ARM_PRESETS_H_
#define HONE_COMMON_TARGET_ARM_PRESETS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::target {

// A device of Arm's architectures, as a board, a phone or a server has it.
struct ArmPreset {
  absl::string_view name;  // "arm/cortex-a72", …
  Target target;
};
const std::vector<ArmPreset>& ArmPresets();

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_ARM_PRESETS_H_
