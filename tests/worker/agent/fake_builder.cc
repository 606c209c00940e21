// Speaks hone-builder's side of the pipe. The space of a request chooses the result: "good",
// "wrong", "crash", "hang", … give the handwritten kernel of that name; "endless" never returns,
// "abort" and "exit" end the process, and "memory" kills it like the kernel's out-of-memory killer.
// "second file", "symbolic link", "hard link" and "other content" give the agent something else
// than one artifact.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "common/record/artifact.h"
#include "common/record/framing.h"
#include "common/record/proto_convert.h"

namespace {

// Does what the words say to an artifact that was written to this path.
void Spoil(const std::string& words, const std::string& path) {
  const std::string other = path + "-2";
  if (words == "second file") std::ofstream(other) << "more";
  if (words == "hard link")
    std::filesystem::create_hard_link(path,
                                      std::filesystem::path(path).parent_path().string() + "-2");
  if (words == "other content") std::ofstream(path, std::ios::app) << "more";
  if (words == "symbolic link") {
    std::filesystem::remove(path);
    std::filesystem::create_symlink("/etc/hostname", path);
  }
}

hone::record::BuildResponse Build(const hone::record::BuildRequest& request) {
  const bool spoiled = request.space.find(' ') != std::string::npos;
  const std::string kind = request.reference ? "reference" : spoiled ? "good" : request.space;
  if (kind == "endless") {
    for (;;) asm volatile("");
  }
  if (kind == "abort") {
    std::fputs("LLVM ERROR: out of registers\n", stderr);
    std::abort();
  }
  if (kind == "exit") std::exit(7);
  if (kind == "memory") raise(SIGKILL);
  const auto object = hone::ReadFile(absl::StrCat(KERNEL_DIR, "/kernel_", kind, ".so"));
  if (!object.ok()) {
    return {.outcome = hone::record::Outcome::kInvalid, .detail = absl::StrCat("no kernel ", kind)};
  }
  // Different decisions give different artifacts, as with real candidates.
  hone::record::Artifact artifact{.shared_object = *object, .workload = request.workload};
  for (const int64_t decision : request.decisions) absl::StrAppend(&artifact.trace, decision, " ");
  const std::string bytes = hone::record::EncodeArtifact(artifact);
  hone::record::BuildResponse response;
  response.artifact_digest = hone::Sha256Of(bytes);
  response.facts.compile_ms = 1;
  static int builds = 0;  // of this process
  response.facts.code_bytes = ++builds;
  const absl::Status written = hone::WriteFileAtomically(
      absl::StrCat(request.artifact_dir, "/", response.artifact_digest), bytes);
  if (!written.ok()) {
    return {.outcome = hone::record::Outcome::kDeviceLost,
            .detail = std::string(written.message())};
  }
  if (spoiled) Spoil(request.space, request.artifact_dir + "/" + response.artifact_digest);
  return response;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--describe") == 0) {
    std::puts(R"({"compiler": "by hand", "codegen_version": 42, "hone_version": "test"})");
    return 0;
  }
  for (;;) {
    const auto message = hone::record::ReadFrame(STDIN_FILENO);
    if (!message.ok()) return 0;
    hone::v1::BuildRequest proto;
    if (!proto.ParseFromString(*message)) return 1;
    const auto response = Build(hone::record::FromProto(proto).value());
    if (!hone::record::WriteFrame(STDOUT_FILENO,
                                  hone::record::ToProto(response).SerializeAsString())
             .ok()) {
      return 1;
    }
  }
}
