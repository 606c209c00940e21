#ifndef HONE_TESTS_INTEGRATION_HONE_HOME_H_
#define HONE_TESTS_INTEGRATION_HONE_HOME_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/integration/process.h"

namespace hone::integration {

// A user with an empty data folder of its own, so that private servers of different tests do not
// meet. The destructor returns once the private server has ended.
class HoneHome {
 public:
  HoneHome() = default;
  ~HoneHome();

  Variables variables() const { return {{"XDG_DATA_HOME", folder_.path()}}; }
  std::string data_dir() const { return folder_ / "hone"; }
  std::string store() const { return data_dir() + "/hone.db"; }
  // `hone` with these words, to its end.
  Result Hone(std::vector<std::string> words, absl::Duration limit = absl::Seconds(240)) const;
  // The process id of the keeper, 0 when no private server runs.
  pid_t Keeper() const;
  // The process that the keeper started under that name, 0 when there is none.
  pid_t ChildOfKeeper(const std::string& program) const;

 private:
  TemporaryFolder folder_;
};

// The object that a command printed; discarded (is_discarded()) when it is none, or has more than
// one line.
nlohmann::json OneLineOfJson(const std::string& output);

}  // namespace hone::integration

#endif  // HONE_TESTS_INTEGRATION_HONE_HOME_H_
