#ifndef HONE_SERVER_RESEARCH_LAB_PRESETS_H_
#define HONE_SERVER_RESEARCH_LAB_PRESETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/research/lab/experiment.h"

namespace hone::lab {

// Finds a comparison by name. Its `sets` are empty if it uses all sets. NotFound: unknown name; the
// message lists the names.
absl::StatusOr<Experiment> FindPreset(absl::string_view name);
std::vector<std::string> PresetNames();

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_PRESETS_H_
