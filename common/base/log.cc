#include "common/base/log.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "spdlog/formatter.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace hone {
namespace {

// Escapes control characters and, for JSON, quotes and backslashes.
std::string Escape(absl::string_view text, bool json) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppendFormat(&out, "\\u%04x", byte);
    } else {
      if (json && (c == '"' || c == '\\')) out += '\\';
      out += c;
    }
  }
  return out;
}

// Removes "job 4711: " from the front of a message and returns the ID, or "" if there is no such
// prefix.
absl::string_view TakeSubject(absl::string_view word, absl::string_view& message) {
  absl::string_view rest = message;
  if (!absl::ConsumePrefix(&rest, word)) return "";
  const size_t end = rest.find(": ");
  const absl::string_view id = rest.substr(0, end);
  if (end == absl::string_view::npos || id.empty() || absl::StrContains(id, ' ')) return "";
  message = rest.substr(end + 2);
  return id;
}

class LineFormatter final : public spdlog::formatter {
 public:
  LineFormatter(std::string program, LogFormat format)
      : program_(std::move(program)), format_(format) {}
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto level = spdlog::level::to_string_view(message.level);
    const std::string line = FormatLogLine(format_, program_, {level.data(), level.size()},
                                           absl::FromChrono(message.time),
                                           {message.payload.data(), message.payload.size()}) +
                             "\n";
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(program_, format_);
  }

 private:
  const std::string program_;
  const LogFormat format_;
};

}  // namespace

std::string FormatLogLine(LogFormat format, absl::string_view program, absl::string_view level,
                          absl::Time time, absl::string_view message) {
  if (format == LogFormat::kText) {
    return absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3S", time, absl::LocalTimeZone()), " ",
                        level, " ", Escape(message, /*json=*/false));
  }
  const absl::string_view job = TakeSubject("job ", message);
  const absl::string_view worker = TakeSubject("worker ", message);
  std::string line = absl::StrCat(
      "{\"time\":\"", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()),
      "\",\"level\":\"", level, "\",\"program\":\"", program, "\"");
  if (!job.empty()) absl::StrAppend(&line, ",\"job\":\"", Escape(job, true), "\"");
  if (!worker.empty()) absl::StrAppend(&line, ",\"worker\":\"", Escape(worker, true), "\"");
  absl::StrAppend(&line, ",\"message\":\"", Escape(message, true), "\"}");
  return line;
}

absl::Status SetUpLog(const std::string& program, absl::string_view format,
                      absl::string_view level) {
  if (format != "text" && format != "json") {
    return absl::InvalidArgumentError(
        absl::StrCat("log-format: '", format, "' is neither text nor json"));
  }
  const std::string name(level);
  const spdlog::level::level_enum known = spdlog::level::from_str(name);
  if (known == spdlog::level::off && name != "off") {
    return absl::InvalidArgumentError(
        absl::StrCat("log-level: '", level, "' is not debug, info, warning, error or off"));
  }
  auto logger =
      std::make_shared<spdlog::logger>(program, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(std::make_unique<LineFormatter>(
      program, format == "json" ? LogFormat::kJson : LogFormat::kText));
  logger->set_level(known);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

}  // namespace hone
