#include "worker/builder/link_command.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "worker/builder/link.h"

namespace hone::builder {

const Command& AddLinkCommand(Command& app, LinkCommandOptions& options) {
  Command& command = app.AddCommand(
      "link", "Link object files to a shared object, which is written to standard output");
  command.Add("--visible", options.visible, "PREFIX of the functions that are visible",
              {Required(), NotEmpty()});
  command.Add("files", options.files,
              "FILE.o, object files for one machine: x86-64, aarch64 or ARMv7", {Required()});
  command.Footer(
      "The exit code is 2 if a file is missing or is not accepted by the linker.\n"
      "Example: hone-builder link --visible resnet_ kernels.o runtime.o > resnet.so");
  return command;
}

absl::StatusOr<std::string> RunLinkCommand(const LinkCommandOptions& options) {
  std::vector<std::string> objects;
  for (const std::string& file : options.files) {
    absl::StatusOr<std::string> object = ReadFile(file);
    if (!object.ok()) return absl::InvalidArgumentError(object.status().message());
    objects.push_back(*std::move(object));
  }
  const std::vector<absl::string_view> views(objects.begin(), objects.end());
  HONE_ASSIGN_OR_RETURN(std::string triple, TripleOf(views[0]));
  return LinkSharedObject(views, {.triple = std::move(triple), .visible = options.visible});
}

}  // namespace hone::builder
