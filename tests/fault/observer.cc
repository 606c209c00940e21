#include "tests/fault/observer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::fault {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(200);
constexpr int kPage = 500;

}  // namespace

absl::StatusOr<std::unique_ptr<client::Connection>> OpenDirect(const std::string& server) {
  client::ConnectionOptions options{.call_timeout = absl::Seconds(1)};
  options.retry.give_up_after = absl::ZeroDuration();
  return client::Connection::Open(server, options);
}

absl::StatusOr<std::unique_ptr<Observer>> Observer::Start(const std::string& server,
                                                          Ledger* ledger) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<client::Connection> connection, OpenDirect(server));
  auto observer = std::unique_ptr<Observer>(new Observer(std::move(connection), ledger));
  observer->thread_ = std::thread([raw = observer.get()] { raw->Loop(); });
  return observer;
}

Observer::~Observer() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

void Observer::Pause() {
  absl::MutexLock lock(&mutex_);
  paused_ = true;
}

void Observer::Resume(int64_t last_record) {
  absl::MutexLock lock(&mutex_);
  last_ = last_record;
  paused_ = false;
}

void Observer::Look() {
  for (;;) {
    std::string token = last_ == 0 ? "" : absl::StrCat(last_);
    const auto page = connection_->RecordPage({}, kPage, token);
    if (!page.ok() || page->empty()) return;
    ledger_->Saw(*page);
    for (const record::Record& record : *page) last_ = std::max(last_, record.id);
  }
}

void Observer::Loop() {
  absl::MutexLock lock(&mutex_);
  while (!stop_) {
    if (!paused_) Look();
    mutex_.AwaitWithTimeout(absl::Condition(&stop_), kInterval);
  }
}

}  // namespace hone::fault
