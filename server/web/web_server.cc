#include "server/web/web_server.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/web/api.h"
#include "server/web/http_server.h"
#include "spdlog/spdlog.h"

namespace hone::web {

WebServer::WebServer(const Options& options)
    : options_(options),
      clock_(options.clock == nullptr ? &system_clock_ : options.clock),
      sessions_(clock_) {}
WebServer::~WebServer() { Stop(); }

absl::StatusOr<std::unique_ptr<WebServer>> WebServer::Start(const Options& options) {
  if (options.listen.IsUnix()) {
    return absl::InvalidArgumentError("web-listen: a browser needs a TCP address; give host:port");
  }
  auto server = std::unique_ptr<WebServer>(new WebServer(options));
  if (options.on_demand) return server;
  absl::MutexLock lock(&server->mutex_);
  HONE_RETURN_IF_ERROR(server->Listen());
  return server;
}

absl::Status WebServer::Listen() {
  auto http = std::make_unique<HttpServer>(
      HttpServer::Options{
          .insecure = options_.insecure, .threads = options_.threads, .streams = options_.streams},
      &sessions_);
  HONE_RETURN_IF_ERROR(http->Listen(options_.listen));
  http_ = std::move(http);
  return absl::OkStatus();
}

void WebServer::Serve(service::Server& server) {
  absl::MutexLock lock(&mutex_);
  server_ = &server;
  server.authenticator().SetSessions(
      [this, &server](absl::string_view token) -> std::optional<rpc::Identity> {
        const std::optional<SessionBook::Session> session = sessions_.Find(token);
        if (!session.has_value()) return std::nullopt;
        const bool withdrawn =
            session->has_token && !server.authenticator().Knows(session->caller.name);
        if (withdrawn) return std::nullopt;
        return session->caller;
      });
  if (http_ == nullptr && !options_.on_demand) {  // after a Stop
    if (const absl::Status listens = Listen(); !listens.ok()) {
      return spdlog::error("the web page ends: {}", std::string(listens.message()));
    }
  }
  if (http_ != nullptr) Begin();
}

void WebServer::Begin() {
  http_->Start(std::make_unique<const Api>(
      server_->InProcessChannel(),
      [server = server_](const std::string& digest) { return server->Text(digest); }));
}

void WebServer::Stop() {
  absl::MutexLock lock(&mutex_);
  if (server_ != nullptr) server_->authenticator().SetSessions(nullptr);
  server_ = nullptr;
  http_.reset();
}

absl::StatusOr<service::Dashboard::Opened> WebServer::Open(const rpc::Identity& caller) {
  absl::MutexLock lock(&mutex_);
  if (server_ == nullptr) return absl::UnavailableError("the server is starting or shutting down");
  if (http_ == nullptr) {
    HONE_RETURN_IF_ERROR(Listen());
    Begin();
  }
  HONE_ASSIGN_OR_RETURN(const std::string code,
                        sessions_.Invite(caller, server_->authenticator().Knows(caller.name)));
  return Opened{.url = absl::StrCat(http_->url(), "#", code),
                .expires = clock_->Now() + SessionBook::kLifetime};
}

int WebServer::port() const {
  absl::MutexLock lock(&mutex_);
  return http_ == nullptr ? 0 : http_->port();
}

}  // namespace hone::web
