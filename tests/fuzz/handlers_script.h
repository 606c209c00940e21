#ifndef HONE_TESTS_FUZZ_HANDLERS_SCRIPT_H_
#define HONE_TESTS_FUZZ_HANDLERS_SCRIPT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hone::fuzz {

// The methods of the server, in the order of their numbers in a script.
struct Method {
  const char* path;
  const char* role;         // whose token it asks for
  bool takes_many = false;  // a stream of messages from the caller
  bool gives_many = false;
};
const std::vector<Method>& Methods();

// A sequence of calls as bytes, so that what a fuzzer does to them gives other sequences: of each
// call the method's number, flags, the length of what follows in two bytes (the lower first), and
// that: the message, or of a stream its messages, each behind its own length. The first byte of a
// script says what the world is like.
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
// What the bytes say; what is cut off counts as far as it goes.
std::vector<ScriptedCall> ReadScript(absl::string_view bytes);

// Writes what ReadScript reads.
class ScriptWriter {
 public:
  // `on_disk`: see HandlersWorld.
  explicit ScriptWriter(bool on_disk) : bytes_(1, on_disk ? '\0' : '\1') {}
  // `method` ends the path of one: "CreateJob".
  ScriptWriter& Add(absl::string_view method, const std::vector<std::string>& messages,
                    uint8_t flags = 0);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};
inline bool IsOnDisk(absl::string_view script) { return !script.empty() && script[0] % 8 == 0; }

// A whole life: a worker registers, a job is tuned by it to its end, and everything is asked for
// that there is to ask.
std::string TuningScript(bool on_disk);
// The same callers at their worst: what is stale, replayed, another's, impossible, cut off.
std::string HostileScript();

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_HANDLERS_SCRIPT_H_
