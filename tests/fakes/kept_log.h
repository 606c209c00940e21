#ifndef HONE_TESTS_FAKES_KEPT_LOG_H_
#define HONE_TESTS_FAKES_KEPT_LOG_H_

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace hone {

// Keeps what is logged while it exists.
class KeptLog {
 public:
  KeptLog() {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("kept", std::move(sink)));
  }
  ~KeptLog() { spdlog::set_default_logger(before_); }
  KeptLog(const KeptLog&) = delete;
  KeptLog& operator=(const KeptLog&) = delete;

  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

}  // namespace hone

#endif  // HONE_TESTS_FAKES_KEPT_LOG_H_
