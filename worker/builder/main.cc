// hone-builder: compiles and links the candidates that the agent names on standard input
// (BuildRequest), and answers on standard output (BuildResponse), one at a time. Its commands print
// the code of a schedule, model its cost, and link object files. See --help.
#include <llvm/Config/llvm-config.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/base/command_line.h"
#include "common/base/host_lock.h"
#include "common/record/artifact.h"
#include "common/record/framing.h"
#include "common/record/proto_convert.h"
#include "common/target/cuda/detect.h"
#include "common/target/opencl/targets.h"
#include "worker/builder/build.h"
#include "worker/builder/commands.h"
#include "worker/builder/confined.h"
#include "worker/builder/nvrtc.h"
#include "worker/compile/backend.h"
#include "worker/sandbox/sandbox.h"

namespace {

using hone::ExistingFolder;
using hone::HostLock;
using hone::ShowDefault;
using hone::record::BuildResponse;

// A runaway compile ends only this process.
constexpr hone::sandbox::ProcessLimits kLimits = {
    .memory_bytes = int64_t{4} << 30,
    // An artifact is made of smaller files, and LLD writes them in pieces.
    .file_bytes = int64_t{2 * hone::record::kMaxArtifactBytes},
    .open_files = 128};

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "hone-builder: %s\n", std::string(status.message()).c_str());
  return 1;
}

// Prints which code can be built here. Code for NVIDIA GPUs needs NVRTC.
int Describe() {
  nlohmann::ordered_json json = {{"compiler", "llvm " LLVM_VERSION_STRING},
                                 {"codegen_version", hone::codegen::kCodegenVersion},
                                 {"hone_version", HONE_VERSION},
                                 {"isas", {"x86_64", "aarch64", "armv7", "opencl"}}};
  if (const auto nvrtc = hone::builder::Nvrtc::Loaded(); nvrtc.ok()) {
    json["isas"].push_back("nvptx64");
    json["nvrtc"] = {{"version", (*nvrtc)->Version()},
                     {"path", (*nvrtc)->path()},
                     {"architectures", (*nvrtc)->Architectures()}};
  } else {
    json["nvrtc_problem"] = std::string(nvrtc.status().message());
  }
  std::puts(json.dump().c_str());
  return 0;
}

int Serve(const std::string& lock_path, const hone::sandbox::SandboxOptions& sandbox) {
  // Keeps LLVM's own output from mixing with the messages.
  const int out = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  if (absl::Status confined = hone::builder::Confine(lock_path, sandbox); !confined.ok()) {
    return Fail(confined);
  }
  for (;;) {
    const absl::StatusOr<std::string> message = hone::record::ReadFrame(STDIN_FILENO);
    if (absl::IsOutOfRange(message.status())) return 0;
    if (!message.ok()) return Fail(message.status());
    hone::v1::BuildRequest proto;
    if (!proto.ParseFromString(*message)) return Fail(absl::DataLossError("a garbled request"));
    const auto request = hone::record::FromProto(proto);
    BuildResponse response{.outcome = hone::record::Outcome::kInvalid};
    if (request.ok()) {
      // The shared lock keeps timing off while this process compiles.
      const absl::StatusOr<HostLock> lock =
          HostLock::Acquire(HostLock::Mode::kShared, absl::InfiniteFuture(), lock_path);
      if (!lock.ok()) return Fail(lock.status());
      response = hone::builder::Build(*request);
    } else {
      response.detail = std::string(request.status().message());
    }
    const absl::Status sent =
        hone::record::WriteFrame(out, hone::record::ToProto(response).SerializeAsString());
    if (!sent.ok()) return Fail(sent);
  }
}

// Prints what a command returns. Returns the exit code.
int Print(const absl::StatusOr<std::string>& result) {
  if (!result.ok()) {
    std::fprintf(stderr, "hone-builder: %s\n", std::string(result.status().message()).c_str());
    return absl::IsInvalidArgument(result.status()) ? hone::kUsageExitCode : 1;
  }
  const bool written = std::fwrite(result->data(), 1, result->size(), stdout) == result->size() &&
                       std::fflush(stdout) == 0;
  if (!written) std::fprintf(stderr, "hone-builder: standard output could not be written\n");
  return written ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  hone::Command app(
      "Compiles and links kernels. Started by hone-worker, which sends requests on standard "
      "input.\nExample: hone-builder code --target x86-avx512 best.trace");
  bool describe = false;
  std::string lock_path = HostLock::DefaultPath();
  app.AddFlag("--describe", describe, "Print the compilers of this machine as JSON, and exit");
  app.Add("--lock", lock_path, "The host's timing lock", {ShowDefault()});
  hone::sandbox::SandboxOptions sandbox;
  app.Add("--write", sandbox.writable, "Folder that artifacts are written to", {ExistingFolder()});
  app.AddFlag("--unconfined", sandbox.may_be_unconfined,
              "Compile even if this system cannot filter system calls (no seccomp)");
  app.AddFlag("--allow-unguarded-files", sandbox.may_leave_files_unguarded,
              "Compile even if this system cannot guard files (no Landlock)");
  hone::builder::CodeOptions code_options;
  const hone::Command& code = hone::builder::AddCodeCommand(app, code_options);
  hone::builder::CostCommandOptions cost_options;
  const hone::Command& cost = hone::builder::AddCostCommand(app, cost_options);
  hone::builder::LinkCommandOptions link_options;
  const hone::Command& link = hone::builder::AddLinkCommand(app, link_options);
  app.AddVersion("hone-builder " HONE_VERSION " with LLVM " LLVM_VERSION_STRING);
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;

  if (describe) {
    return Describe();
  }
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  hone::sandbox::LimitProcess(kLimits);
  if (code.Given()) {
    hone::cuda::AddTargets();
    hone::opencl::AddTargets();
    return Print(hone::builder::RunCodeCommand(code_options, lock_path));
  }
  if (cost.Given()) return Print(hone::builder::RunCostCommand(cost_options, lock_path));
  return link.Given() ? Print(hone::builder::RunLinkCommand(link_options))
                      : Serve(lock_path, sandbox);
}
