#ifndef HONE_TESTS_INTEGRATION_HONE_HOME_H_
#define HONE_TESTS_INTEGRATION_HONE_HOME_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/integration/process.h"

namespace hone::integration {

// A user with an empty data folder, which separates the private servers of different tests. The
// destructor waits for the end of the private server.
class HoneHome {
 public:
  HoneHome() = default;
  ~HoneHome();

  Variables variables() const { return {{"XDG_DATA_HOME", folder_.path()}}; }
  std::string data_dir() const { return folder_ / "hone"; }
  std::string store() const { return data_dir() + "/hone.db"; }
  // Runs `hone` with these arguments to its end.
  Result Hone(std::vector<std::string> words, absl::Duration limit = absl::Seconds(240)) const;
  // The process id of the keeper, or 0 if no private server runs.
  pid_t Keeper() const;
  // The process that the keeper started under this name, or 0 if there is none.
  pid_t ChildOfKeeper(const std::string& program) const;

 private:
  TemporaryFolder folder_;
};

// The object that a command printed. Discarded (is_discarded()) if the output is not a single line
// with an object.
nlohmann::json OneLineOfJson(const std::string& output);

}  // namespace hone::integration

#endif  // HONE_TESTS_INTEGRATION_HONE_HOME_H_
