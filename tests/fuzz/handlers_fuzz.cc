// Sequences of gRPC calls to a server's handlers (handlers_script.h has the encoding). Every call
// must return a status of the protocol, unauthorized calls must fail, and every job must end.
#include <cstring>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "google/protobuf/stubs/logging.h"
#include "hone/v1/admin.pb.h"
#include "spdlog/spdlog.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/handlers_mutator.h"
#include "tests/fuzz/handlers_script.h"
#include "tests/fuzz/handlers_world.h"

namespace {

using namespace hone;
using hone::fuzz::Require;

// INTERNAL and UNKNOWN are our own bugs; no call has a deadline, so DEADLINE_EXCEEDED is one too.
bool IsOfTheProtocol(grpc::StatusCode code) {
  static const auto* const known =
      new std::set<grpc::StatusCode>{grpc::StatusCode::OK,
                                     grpc::StatusCode::CANCELLED,
                                     grpc::StatusCode::INVALID_ARGUMENT,
                                     grpc::StatusCode::NOT_FOUND,
                                     grpc::StatusCode::ALREADY_EXISTS,
                                     grpc::StatusCode::PERMISSION_DENIED,
                                     grpc::StatusCode::UNAUTHENTICATED,
                                     grpc::StatusCode::RESOURCE_EXHAUSTED,
                                     grpc::StatusCode::FAILED_PRECONDITION,
                                     grpc::StatusCode::ABORTED,
                                     grpc::StatusCode::UNAVAILABLE};
  return known->contains(code);
}

std::string TokenFor(const fuzz::ScriptedCall& call) {
  if ((call.flags & fuzz::kNoToken) != 0) return "";
  const std::string role = call.method->role;
  if ((call.flags & fuzz::kOthersToken) == 0) return fuzz::HandlersWorld::TokenOf(role);
  return fuzz::HandlersWorld::TokenOf(role == "client" ? "worker" : "client");
}

// Redirects backups to the world's folder.
void Confine(const std::string& folder, fuzz::ScriptedCall& call) {
  v1::BackupStoreRequest request;
  if (call.messages.size() != 1 || !request.ParseFromString(call.messages[0])) return;
  const std::string& path = request.path();
  const std::string name = path.substr(path.rfind('/') + 1).substr(0, 8);
  request.set_path(absl::StrCat(folder, "/backup ", name.find('\0') == name.npos ? name : ""));
  call.messages[0] = request.SerializeAsString();
}

void Make(fuzz::HandlersWorld& world, bool on_disk, fuzz::ScriptedCall& call) {
  if ((call.flags & fuzz::kTimePasses) != 0) world.Pass(absl::Seconds(90), absl::Seconds(5));
  const std::string path = call.method->path;
  if (path == "/hone.v1.AdminService/BackupStore") Confine(world.folder(), call);
  // A WatchJob caller disconnects after the first answer; others wait for the last one.
  const int answers = path == "/hone.v1.TuningService/WatchJob" ? 1 : 1 << 20;
  const auto reply = world.Call(path, call.messages, TokenFor(call), answers);
  const grpc::StatusCode code = reply.status.error_code();
  // A store in memory does not support files.
  const bool known = IsOfTheProtocol(code) || (!on_disk && code == grpc::StatusCode::UNIMPLEMENTED);
  Require(known, "a status of the protocol",
          absl::StrCat(path, ": ", code, ": ", reply.status.error_message()));
  if ((call.flags & (fuzz::kNoToken | fuzz::kOthersToken)) != 0) {
    Require(code == grpc::StatusCode::UNAUTHENTICATED ||
                code == grpc::StatusCode::PERMISSION_DENIED ||
                code == grpc::StatusCode::INVALID_ARGUMENT,
            "who may not call is refused",
            absl::StrCat(path, ": ", code, ": ", reply.status.error_message()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  spdlog::set_level(spdlog::level::off);
  return 0;
}

// Provided by libFuzzer.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  Rng rng(seed);
  if (LLVMFuzzerMutate != nullptr && rng.Below(8) == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string script = fuzz::MutateScript(fuzz::TextOf(data, size), rng);
  if (script.empty() || script.size() > most) return size;
  std::memcpy(data, script.data(), script.size());
  return script.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes = fuzz::TextOf(data, size);
  std::vector<fuzz::ScriptedCall> calls = fuzz::ReadScript(bytes);
  if (calls.empty()) return 0;
  const bool on_disk = fuzz::IsOnDisk(bytes);
  fuzz::HandlersWorld world(on_disk);
  for (fuzz::ScriptedCall& call : calls) Make(world, on_disk, call);
  world.CheckWhatMustHold();
  return 0;
}
