#include "tests/worker/emulated/emulator.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

extern char** environ;

namespace hone::codegen {
namespace {

// The CPU that QEMU emulates. Older cores refuse instructions that the target does not have.
std::string AArch64Cpu(const target::Target& target) {
  if (target.HasFeature("sve")) return absl::StrCat("max,sve-max-vq=", target.vector_bits / 128);
  for (const absl::string_view newer : {"bf16", "dotprod", "fullfp16", "i8mm"}) {
    if (target.HasFeature(newer)) return "max,sve=off";
  }
  return "cortex-a72";
}
std::string Armv7Cpu(const target::Target&) { return "cortex-a15"; }

struct Entry {
  absl::string_view arch;
  absl::string_view emulator;
  absl::string_view libraries;  // folder of the C library
  absl::string_view server;     // kernel_server of the architecture
  std::string (*cpu)(const target::Target& target);
};
// One line per architecture. The build defines the names; one is empty if a program is missing.
constexpr Entry kEntries[] = {
    {"aarch64", QEMU_AARCH64, "/usr/aarch64-linux-gnu", SERVER_AARCH64, AArch64Cpu},
    {"armv7", QEMU_ARMV7, "/usr/arm-linux-gnueabihf", SERVER_ARMV7, Armv7Cpu},
};

template <typename Number>
void Append(std::string& text, Number number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

absl::StatusOr<Emulator*> Emulator::For(const target::Target& target) {
  static auto* const emulators = new std::map<std::string, Emulator*>;
  for (const Entry& entry : kEntries) {
    if (entry.arch != target.arch) continue;
    if (entry.emulator.empty() || entry.server.empty()) {
      return absl::NotFoundError(absl::StrCat(
          "no emulator or no cross compiler for ", target.arch,
          " when the tests were configured; run deploy/install-deps.sh and configure again"));
    }
    const std::vector<std::string> command = {
        std::string(entry.emulator), "-L", std::string(entry.libraries), "-cpu", entry.cpu(target),
        std::string(entry.server)};
    Emulator*& emulator = (*emulators)[absl::StrJoin(command, " ")];
    if (emulator == nullptr) emulator = new Emulator(command);
    return emulator;
  }
  return absl::UnimplementedError(absl::StrCat("no emulator of ", target.arch));
}

absl::Status Emulator::Start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return ErrnoStatus(errno, "make a pair of sockets");
  std::vector<char*> words;
  for (std::string& word : command_) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const int error = posix_spawn(&process_, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return ErrnoStatus(error, absl::StrCat("start ", command_[0]));
  }
  socket_ = ends[0];
  return absl::OkStatus();
}

absl::Status Emulator::Ended() {
  int status = 0;
  close(socket_);
  socket_ = -1;
  waitpid(process_, &status, 0);
  return absl::InternalError(absl::StrCat("the kernel ended the emulated process (",
                                          WIFSIGNALED(status)
                                              ? absl::StrCat("signal ", WTERMSIG(status))
                                              : absl::StrCat("exit code ", WEXITSTATUS(status)),
                                          "): ", absl::StrJoin(command_, " ")));
}

bool Emulator::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(sent);
  }
  return true;
}

bool Emulator::Receive(void* memory, int64_t bytes) {
  auto* at = static_cast<char*>(memory);
  while (bytes > 0) {
    const ssize_t received = recv(socket_, at, bytes, 0);
    if (received <= 0) return false;
    at += received;
    bytes -= received;
  }
  return true;
}

absl::Status Emulator::Run(absl::string_view shared_object, int32_t threads,
                           absl::Span<EmulatedBuffer> buffers) {
  if (socket_ < 0) HONE_RETURN_IF_ERROR(Start());
  // The format is described in kernel_server.c.
  std::string request;
  Append(request, static_cast<int64_t>(shared_object.size()));
  absl::StrAppend(&request, shared_object);
  Append(request, static_cast<int32_t>(buffers.size()));
  Append(request, threads);
  for (const EmulatedBuffer& buffer : buffers) {
    Append(request, static_cast<int64_t>(buffer.bytes.size()));
    Append(request, buffer.offset);
  }
  for (const EmulatedBuffer& buffer : buffers) absl::StrAppend(&request, buffer.bytes);
  int64_t length = 0;
  if (!Send(request) || !Receive(&length, sizeof length)) return Ended();
  std::string message(length, '\0');
  if (!Receive(message.data(), length)) return Ended();
  if (!message.empty()) return absl::InternalError(message);
  for (EmulatedBuffer& buffer : buffers) {
    if (!Receive(buffer.bytes.data(), static_cast<int64_t>(buffer.bytes.size()))) return Ended();
  }
  return absl::OkStatus();
}

}  // namespace hone::codegen
