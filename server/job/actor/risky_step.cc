#include "server/job/actor/risky_step.h"

#include "absl/strings/ascii.h"
#include "common/base/file.h"

namespace hone::job {
namespace {

absl::string_view HostOf(absl::string_view server) { return server.substr(0, server.find('/')); }

}  // namespace

std::string ThisBoot() {
  static const std::string& boot = *new std::string([] {
    const absl::StatusOr<std::string> id = ReadFile("/proc/sys/kernel/random/boot_id");
    return id.ok() ? std::string(absl::StripAsciiWhitespace(*id)) : std::string();
  }());
  return boot;
}

bool EndedByItself(const RiskyStep& step, absl::string_view server, absl::string_view boot) {
  if (step.server == server) return false;
  const bool same_host = HostOf(step.server) == HostOf(server);
  return !same_host || step.boot == boot;
}

}  // namespace hone::job
