#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "spdlog/spdlog.h"

namespace hone::rpc {
namespace {

constexpr absl::Duration kRepeat = absl::Seconds(10);
constexpr size_t kMaxRemembered = 256;

// Words in OpenSSL's message, and what they mean to a reader of the server's log.
struct Meaning {
  absl::string_view words;
  absl::string_view meaning;
};
constexpr Meaning kMeanings[] = {
    {"certificate verify failed",
     "the peer's certificate has expired, or is not of an authority that is trusted here"},
    {"peer did not return a certificate", "the peer showed no certificate, and one is asked for"},
    {"alert unknown ca", "the peer does not trust the authority of our certificate"},
    {"alert certificate unknown", "the peer does not take our certificate"},
    {"alert bad certificate", "the peer does not take our certificate"},
    {"alert certificate expired", "the peer says that our certificate has expired"},
    {"wrong version number", "the peer does not speak TLS"},
    {"http request", "the peer speaks plain HTTP"},
    {"unsupported protocol", "the peer speaks an older TLS than 1.2"},
    {"no protocols available", "the peer speaks an older TLS than 1.2"},
};

bool IsNew(const std::string& message) {
  static absl::Mutex mutex;
  static auto& last = *new std::map<std::string, absl::Time>;
  const absl::Time now = absl::Now();
  absl::MutexLock lock(&mutex);
  if (last.size() >= kMaxRemembered) last.clear();
  const auto [entry, added] = last.emplace(message, now);
  if (!added && now - entry->second < kRepeat) return false;
  entry->second = now;
  return true;
}

void Log(gpr_log_func_args* args) {
  const std::string text = ExplainGrpcMessage(args->message);
  if (text.empty() || !IsNew(text)) return;
  if (args->severity == GPR_LOG_SEVERITY_ERROR) {
    spdlog::warn("{}", text);
  } else {
    spdlog::debug("{}", text);
  }
}

}  // namespace

std::string ExplainGrpcMessage(absl::string_view message) {
  if (!absl::StrContains(message, "andshake failed")) return absl::StrCat("grpc: ", message);
  const std::string lower = absl::AsciiStrToLower(message);
  for (const Meaning& entry : kMeanings) {
    if (absl::StrContains(lower, entry.words)) {
      return absl::StrCat("a TLS handshake failed: ", entry.meaning);
    }
  }
  // What a port scanner leaves behind has no cause worth reading.
  if (absl::StrContains(message, "SSL_ERROR_SYSCALL")) return "";
  return absl::StrCat("a TLS handshake failed: ", message);
}

void TakeGrpcLog() { gpr_set_log_function(&Log); }

}  // namespace hone::rpc
