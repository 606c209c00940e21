#ifndef HONE_TESTS_FUZZ_HANDLERS_SCRIPT_H_
#define HONE_TESTS_FUZZ_HANDLERS_SCRIPT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hone::fuzz {

// The server's methods; their index is their number in a script.
struct Method {
  const char* path;
  const char* role;         // the role it requires
  bool takes_many = false;  // the caller sends a stream of messages
  bool gives_many = false;
};
const std::vector<Method>& Methods();

// A sequence of calls as bytes, so that a fuzzer's changes give other sequences. Each call has the
// method's number, flags, a two-byte length (little-endian), and its content: the message, or for a
// stream its messages, each with its length. The script's first byte selects the kind of world.
enum ScriptFlag : uint8_t {
  kNoToken = 1,      // the call has none, …
  kOthersToken = 2,  // or, without kNoToken, one of another role
  kTimePasses = 4,   // a minute and a half, in steps of five seconds, before the call
};

struct ScriptedCall {
  const Method* method = nullptr;
  uint8_t flags = 0;
  std::vector<std::string> messages;
};

inline constexpr size_t kMaxScriptedCalls = 64;
// Parses a script; truncated calls count as far as they go.
std::vector<ScriptedCall> ReadScript(absl::string_view bytes);

// Writes a script for ReadScript.
class ScriptWriter {
 public:
  // `on_disk`: see HandlersWorld.
  explicit ScriptWriter(bool on_disk) : bytes_(1, on_disk ? '\0' : '\1') {}
  // `method` is the last part of a path, e.g. "CreateJob".
  ScriptWriter& Add(absl::string_view method, const std::vector<std::string>& messages,
                    uint8_t flags = 0);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};
inline bool IsOnDisk(absl::string_view script) { return !script.empty() && script[0] % 8 == 0; }

// A complete run: a worker registers, tunes a job to its end, and every method is called.
std::string TuningScript(bool on_disk);
// Hostile calls by the same callers: stale, replayed, of another caller, impossible, truncated.
std::string HostileScript();

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_HANDLERS_SCRIPT_H_
