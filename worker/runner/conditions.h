#ifndef HONE_WORKER_RUNNER_CONDITIONS_H_
#define HONE_WORKER_RUNNER_CONDITIONS_H_

#include <string>
#include <vector>

namespace hone::runner {

// Something that measuring on this machine needs or benefits from, and what was found.
struct Condition {
  std::string name;  // "seccomp"
  bool ok = true;
  std::string finding;
  std::string advice;  // "" if it is ok
};

// Checks whether this machine runs programs without an emulator, confines kernels, reports its
// clock rate and throttling, and has a plausible date. `root` replaces / in tests.
std::vector<Condition> DescribeConditions(const std::string& root = "");

// {"conditions": [{"name": …, "ok": …, "finding": …, "advice": …}, …]}
std::string ToJson(const std::vector<Condition>& conditions);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_CONDITIONS_H_
