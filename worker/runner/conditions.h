#ifndef HONE_WORKER_RUNNER_CONDITIONS_H_
#define HONE_WORKER_RUNNER_CONDITIONS_H_

#include <string>
#include <vector>

namespace hone::runner {

// One thing that measuring on this machine needs or would like to have.
struct Condition {
  std::string name;  // "seccomp"
  bool ok = true;
  std::string finding;
  std::string advice;  // "" if it is ok
};

// Whether this machine runs programs itself, confines kernels, shows its clocks and throttling, and
// has a clock that can be right. `root` replaces / in tests of files.
std::vector<Condition> DescribeConditions(const std::string& root = "");

// {"conditions": [{"name": …, "ok": …, "finding": …, "advice": …}, …]}
std::string ToJson(const std::vector<Condition>& conditions);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_CONDITIONS_H_
