#ifndef HONE_COMMON_TARGET_ARM_PRESETS_H_
#define HONE_COMMON_TARGET_ARM_PRESETS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::target {

// A preset for an Arm CPU as found in boards, phones and servers.
struct ArmPreset {
  absl::string_view name;  // "arm/cortex-a72", …
  Target target;
};
const std::vector<ArmPreset>& ArmPresets();

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_ARM_PRESETS_H_
