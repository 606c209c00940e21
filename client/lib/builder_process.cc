#include "client/lib/builder_process.h"

#include "client/lib/program_call.h"

namespace hone::client {

absl::StatusOr<std::string> RunBuilder(const std::vector<std::string>& words,
                                       const std::string& input, const std::string& program_dir) {
  return CallProgram({.program = "hone-builder",
                      .purpose = "generates the code",
                      .words = words,
                      .input = input,
                      .program_dir = program_dir});
}

}  // namespace hone::client
