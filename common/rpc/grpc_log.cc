#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "spdlog/spdlog.h"

namespace hone::rpc {
namespace {

constexpr absl::Duration kRepeat = absl::Seconds(10);
constexpr size_t kMaxRemembered = 256;

// Parts of OpenSSL's messages, and what they mean to a reader of the server's log.
struct Meaning {
  absl::string_view words;
  absl::string_view meaning;
};
constexpr Meaning kMeanings[] = {
    {"certificate verify failed",
     "the peer's certificate has expired, or was issued by an authority that is not trusted here"},
    {"peer did not return a certificate", "the peer sent no certificate, but one is required"},
    {"alert unknown ca", "the peer does not trust the authority of our certificate"},
    {"alert certificate unknown", "the peer does not accept our certificate"},
    {"alert bad certificate", "the peer does not accept our certificate"},
    {"alert certificate expired", "the peer says that our certificate has expired"},
    {"wrong version number", "the peer does not speak TLS"},
    {"http request", "the peer speaks plain HTTP"},
    {"unsupported protocol", "the peer speaks a version of TLS before 1.2"},
    {"no protocols available", "the peer speaks a version of TLS before 1.2"},
};

bool IsNew(const std::string& message) {
  static absl::Mutex mutex;
  static auto& last = *new std::map<std::string, absl::Time>;
  const absl::Time now = SteadyNow();
  absl::MutexLock lock(&mutex);
  if (last.size() >= kMaxRemembered) last.clear();
  const auto [entry, added] = last.emplace(message, now);
  if (!added && now - entry->second < kRepeat) return false;
  entry->second = now;
  return true;
}

template <GrpcLog kProgram>
void Log(gpr_log_func_args* args) {
  const std::string text = ExplainGrpcMessage(args->message);
  if (text.empty() || !IsNew(text)) return;
  const bool warns = kProgram == GrpcLog::kServer && args->severity == GPR_LOG_SEVERITY_ERROR;
  spdlog::log(warns ? spdlog::level::warn : spdlog::level::debug, "{}", text);
}

// Returns the text of a message without gRPC's fields, followed by the operating system's error if
// there is one. The form of the message is "TEXT {file:…, children:[… os_error:"CAUSE" …]}".
std::string WithoutFields(absl::string_view message) {
  constexpr absl::string_view kCause = "os_error:\"";
  const absl::string_view text = message.substr(0, message.find(" {"));
  const size_t cause = message.find(kCause);
  if (cause == absl::string_view::npos) return std::string(text);
  const absl::string_view words = message.substr(cause + kCause.size());
  return absl::StrCat(text, ": ", words.substr(0, words.find('"')));
}

}  // namespace

std::string ExplainGrpcMessage(absl::string_view message) {
  // The program itself reports an address that it cannot listen on.
  if (absl::StrContains(message, "No address added")) return "";
  if (!absl::StrContains(message, "andshake failed")) {
    return absl::StrCat("grpc: ", WithoutFields(message));
  }
  const std::string lower = absl::AsciiStrToLower(message);
  for (const Meaning& entry : kMeanings) {
    if (absl::StrContains(lower, entry.words)) {
      return absl::StrCat("a TLS handshake failed: ", entry.meaning);
    }
  }
  // Port scanners cause this error, and it has no useful cause.
  if (absl::StrContains(message, "SSL_ERROR_SYSCALL")) return "";
  return absl::StrCat("a TLS handshake failed: ", message);
}

void TakeGrpcLog(GrpcLog program) {
  gpr_set_log_function(program == GrpcLog::kServer ? &Log<GrpcLog::kServer>
                                                   : &Log<GrpcLog::kCaller>);
}

}  // namespace hone::rpc
