#include "worker/builder/link_command.h"

#include <cstdio>

#include "absl/status/statusor.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "worker/builder/link.h"

namespace hone::builder {
namespace {

absl::StatusOr<std::string> Link(const LinkCommandOptions& options) {
  std::vector<std::string> objects;
  for (const std::string& file : options.files) {
    absl::StatusOr<std::string> object = ReadFile(file);
    if (!object.ok()) return absl::InvalidArgumentError(object.status().message());
    objects.push_back(*std::move(object));
  }
  const std::vector<absl::string_view> views(objects.begin(), objects.end());
  return LinkSharedObject(views, {.visible = options.visible});
}

}  // namespace

const Command& AddLinkCommand(Command& app, LinkCommandOptions& options) {
  Command& command = app.AddCommand(
      "link", "Link object files to a shared object, which is written to standard output");
  command.Add("--visible", options.visible, "PREFIX of the functions that are visible",
              {Required(), NotEmpty()});
  command.Add("files", options.files, "FILE.o, each an object file for x86-64", {Required()});
  command.Footer(
      "The exit code is 2 if a file is missing or is not accepted by the linker.\n"
      "Example: hone-builder link --visible resnet_ kernels.o runtime.o > resnet.so");
  return command;
}

int RunLinkCommand(const LinkCommandOptions& options) {
  const absl::StatusOr<std::string> linked = Link(options);
  if (!linked.ok()) {
    std::fprintf(stderr, "hone-builder: %s\n", std::string(linked.status().message()).c_str());
    return absl::IsInvalidArgument(linked.status()) ? kUsageExitCode : 1;
  }
  const bool written = std::fwrite(linked->data(), 1, linked->size(), stdout) == linked->size() &&
                       std::fflush(stdout) == 0;
  if (!written) std::fprintf(stderr, "hone-builder: standard output could not be written\n");
  return written ? 0 : 1;
}

}  // namespace hone::builder
