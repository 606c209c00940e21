#include "server/lab/set_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::lab {

absl::StatusOr<std::vector<std::string>> RecordedSetNames(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string file = it->path().filename().string();
    if (absl::EndsWith(file, kSetSuffix)) {
      names.push_back(file.substr(0, file.size() - kSetSuffix.size()));
    }
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat("recorded sets in ", folder, ": ", error.message(),
                                            "; --recorded-dir says where they are"));
  }
  if (names.empty()) {
    return absl::NotFoundError(absl::StrCat("no recorded set (NAME", kSetSuffix, ") in ", folder));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<RecordedSet> LoadRecordedSet(const std::string& folder, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> names, RecordedSetNames(folder));
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return absl::NotFoundError(
        absl::StrCat("no recorded set '", name, "'; there are: ", absl::StrJoin(names, ", ")));
  }
  const std::string path = absl::StrCat(folder, "/", name, kSetSuffix);
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  absl::StatusOr<RecordedSet> set = DecodeRecordedSet(bytes);
  if (!set.ok()) {
    return absl::Status(set.status().code(), absl::StrCat(path, ": ", set.status().message()));
  }
  return set;
}

}  // namespace hone::lab
