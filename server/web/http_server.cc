#include "server/web/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/listener.h"
#include "common/rpc/secret.h"
#include "nlohmann/json.hpp"
#include "server/web/message_json.h"
#include "server/web/page_files.h"
#include "spdlog/spdlog.h"

namespace hone::web {
namespace {

constexpr size_t kMaxBody = 64 << 10;
// An event stream writes at least this often, to find out whether the browser still reads.
constexpr absl::Duration kHeartbeat = absl::Seconds(5);
constexpr absl::Duration kPoll = absl::Milliseconds(50);
// An event stream evaluates its path for at most one part in this many of the time.
constexpr int kIdleShare = 20;

// No script, style, image or connection of elsewhere, no inline code, no frame, and no text that
// becomes code or markup.
constexpr char kContentPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

struct HttpCode {
  absl::StatusCode code;
  int http;
};
constexpr HttpCode kHttpCodes[] = {
    {absl::StatusCode::kInvalidArgument, 400},
    {absl::StatusCode::kUnauthenticated, 401},
    {absl::StatusCode::kPermissionDenied, 403},
    {absl::StatusCode::kNotFound, 404},
    {absl::StatusCode::kFailedPrecondition, 409},
    {absl::StatusCode::kAlreadyExists, 409},
    {absl::StatusCode::kAborted, 409},
    {absl::StatusCode::kResourceExhausted, 429},
    {absl::StatusCode::kUnavailable, 503},
    {absl::StatusCode::kDeadlineExceeded, 504},
};

constexpr std::pair<absl::string_view, const char*> kContentTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

std::string ErrorJson(const absl::Status& error) {
  std::string json = "{\"error\":";
  AppendJson(error.message(), &json);
  absl::StrAppend(&json, ",\"code\":\"", absl::StatusCodeToString(error.code()), "\"}");
  return json;
}

void Answer(const absl::StatusOr<std::string>& json, httplib::Response& response) {
  response.status = 200;
  if (json.ok()) return response.set_content(*json, "application/json");
  const auto* known =
      std::find_if(std::begin(kHttpCodes), std::end(kHttpCodes),
                   [&](const HttpCode& row) { return row.code == json.status().code(); });
  response.status = known == std::end(kHttpCodes) ? 500 : known->http;
  response.set_content(ErrorJson(json.status()), "application/json");
}

// The host of a Host header, without its port.
std::string HostOf(absl::string_view header) {
  const size_t colon = header.rfind(':');
  const size_t bracket = header.rfind(']');
  const bool has_port =
      colon != absl::string_view::npos && (bracket == absl::string_view::npos || bracket < colon);
  absl::string_view host = has_port ? header.substr(0, colon) : header;
  absl::ConsumePrefix(&host, "[");
  absl::ConsumeSuffix(&host, "]");
  return std::string(host);
}

std::string CookieOf(const httplib::Request& request, const std::string& name) {
  const std::string header = request.get_header_value("Cookie");  // outlives the views
  for (absl::string_view cookie : absl::StrSplit(header, ';')) {
    cookie = absl::StripAsciiWhitespace(cookie);
    if (absl::ConsumePrefix(&cookie, absl::StrCat(name, "="))) return std::string(cookie);
  }
  return "";
}

// The fields of a flat JSON object, as texts.
absl::StatusOr<Parameters> ReadBody(const std::string& body) {
  const nlohmann::json json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("the body is not a JSON object");
  Parameters values;
  for (const auto& [key, value] : json.items()) {
    if (value.is_structured() || value.is_null()) {
      return absl::InvalidArgumentError(absl::StrCat(key, ": not a text, a number or a flag"));
    }
    values[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return values;
}

Parameters ParametersOf(const httplib::Params& params) {
  Parameters values;
  for (const auto& [key, value] : params) values[key] = value;
  return values;
}

}  // namespace

HttpServer::HttpServer(const Options& options, SessionBook* sessions)
    : options_(options), sessions_(sessions) {
  server_.new_task_queue = [threads = options.threads] { return new httplib::ThreadPool(threads); };
  server_.set_payload_max_length(kMaxBody);
  server_.set_tcp_nodelay(true);
  server_.set_keep_alive_timeout(1);  // a shutdown waits for connections that are kept
  // The library's default would let a second server listen on the same port.
  server_.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server_.set_default_headers({{"Content-Security-Policy", kContentPolicy},
                               {"X-Content-Type-Options", "nosniff"},
                               {"X-Frame-Options", "DENY"},
                               {"Referrer-Policy", "no-referrer"},
                               {"Cross-Origin-Opener-Policy", "same-origin"},
                               {"Cross-Origin-Resource-Policy", "same-origin"},
                               {"Cache-Control", "no-store"}});
  server_.set_exception_handler(
      [](const httplib::Request&, httplib::Response& response, std::exception_ptr error) {
        Refuse(absl::InternalError("the server could not answer"), response);
        try {
          std::rethrow_exception(std::move(error));
        } catch (const std::exception& what) {
          spdlog::error("the web page: {}", what.what());
        }
      });
  server_.set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        const absl::Status status = CheckOrigin(request);
        if (status.ok()) return httplib::Server::HandlerResponse::Unhandled;
        Refuse(status, response);
        return httplib::Server::HandlerResponse::Handled;
      });
  const auto add = [this](auto method, const char* pattern, auto handle) {
    (server_.*method)(pattern,
                      [this, handle](const httplib::Request& request, httplib::Response& response) {
                        (this->*handle)(request, response);
                      });
  };
  using Pattern =
      httplib::Server& (httplib::Server::*)(const std::string&, httplib::Server::Handler);
  const Pattern get = &httplib::Server::Get;
  const Pattern post = &httplib::Server::Post;
  add(post, "/api/session", &HttpServer::Begin);
  add(post, "/api/end-session", &HttpServer::End);
  add(get, "/api/session", &HttpServer::Describe);
  add(get, "/api/events", &HttpServer::Follow);
  add(get, "/api/[a-z-]+", &HttpServer::Read);
  add(post, "/api/[a-z-]+", &HttpServer::Act);
  add(get, "/([a-z.]*)", &HttpServer::File);
}

absl::Status HttpServer::Listen(const rpc::Address& address) {
  // The library does not look up host names.
  const rpc::Address bound{.host = address.host == "localhost" ? "127.0.0.1" : address.host,
                           .port = address.port};
  if (const absl::Status free = rpc::CheckPortFree(bound); !free.ok()) {
    return absl::Status(free.code(), absl::StrCat("web-listen: ", free.message()));
  }
  const bool any = bound.port == 0;
  port_ = any ? server_.bind_to_any_port(bound.host) : bound.port;
  if (any ? port_ <= 0 : !server_.bind_to_port(bound.host, bound.port)) {
    return absl::UnavailableError(absl::StrCat("web-listen: cannot listen on ", bound.ToText()));
  }
  std::string host = bound.host;
  if (char name[256] = {}; host == "0.0.0.0" || host == "::") {
    host = gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
  }
  url_ = absl::StrCat("http://", rpc::Address{.host = host, .port = port_}.ToText(), "/");
  return absl::OkStatus();
}

void HttpServer::Start(std::unique_ptr<const Api> api) {
  api_ = std::move(api);
  thread_ = std::thread([this] { server_.listen_after_bind(); });
  // Before that, a call of stop would have no effect.
  while (!server_.is_running()) absl::SleepFor(absl::Milliseconds(1));
}

void HttpServer::Stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  server_.stop();
  thread_.join();
}

void HttpServer::Refuse(const absl::Status& error, httplib::Response& response) {
  Answer(error, response);
}

std::string HttpServer::CookieName() const { return absl::StrCat("hone_session_", port_); }

std::string HttpServer::TokenOf(const httplib::Request& request) const {
  return CookieOf(request, CookieName());
}

absl::Status HttpServer::CheckOrigin(const httplib::Request& request) const {
  const std::string host = HostOf(request.get_header_value("Host"));
  if (!options_.insecure && !rpc::Address{.host = host, .port = 1}.IsLocal()) {
    return absl::PermissionDeniedError(
        absl::StrCat("the page is not served as '", host, "': open it as ", url_));
  }
  const std::string site = request.get_header_value("Sec-Fetch-Site");
  if (absl::StartsWith(request.path, "/api/") && !site.empty() && site != "same-origin") {
    return absl::PermissionDeniedError("the request comes from another page");
  }
  return absl::OkStatus();
}

absl::StatusOr<SessionBook::Session> HttpServer::SessionOf(const httplib::Request& request) const {
  std::optional<SessionBook::Session> session = sessions_->Find(TokenOf(request));
  if (session.has_value()) return *std::move(session);
  return absl::UnauthenticatedError("this session has ended: run hone dashboard again");
}

absl::StatusOr<Parameters> HttpServer::CheckAction(const httplib::Request& request) const {
  HONE_ASSIGN_OR_RETURN(const SessionBook::Session session, SessionOf(request));
  if (!rpc::EqualSecrets(request.get_header_value("x-hone-csrf"), session.csrf)) {
    return absl::PermissionDeniedError("the request does not come from this page: reload it");
  }
  return ReadBody(request.body);
}

void HttpServer::Begin(const httplib::Request& request, httplib::Response& response) {
  if (!request.has_header("x-hone-csrf")) {
    return Refuse(absl::PermissionDeniedError("the request does not come from this page"),
                  response);
  }
  const absl::StatusOr<Parameters> body = ReadBody(request.body);
  if (!body.ok()) return Refuse(body.status(), response);
  const auto code = body->find("code");
  const absl::StatusOr<std::string> token =
      sessions_->Begin(code == body->end() ? "" : code->second);
  if (!token.ok()) return Refuse(token.status(), response);
  response.set_header("Set-Cookie", absl::StrCat(CookieName(), "=", *token, "; Path=/; HttpOnly; ",
                                                 "SameSite=Strict; Max-Age=",
                                                 absl::ToInt64Seconds(SessionBook::kLifetime)));
  Answer(std::string("{}"), response);
}

void HttpServer::End(const httplib::Request& request, httplib::Response& response) {
  const absl::StatusOr<Parameters> checked = CheckAction(request);
  if (!checked.ok()) return Refuse(checked.status(), response);
  sessions_->End(TokenOf(request));
  Answer(std::string("{}"), response);
}

void HttpServer::Describe(const httplib::Request& request, httplib::Response& response) {
  const absl::StatusOr<SessionBook::Session> session = SessionOf(request);
  if (!session.ok()) return Refuse(session.status(), response);
  std::string json = "{\"name\":";
  AppendJson(session->caller.name, &json);
  absl::StrAppend(&json, ",\"role\":\"", rpc::RoleName(session->caller.role), "\",\"csrf\":\"",
                  session->csrf, "\",\"expires_unix_ms\":", absl::ToUnixMillis(session->expires),
                  "}");
  Answer(json, response);
}

absl::StatusOr<const Api::Route*> HttpServer::RouteOf(const std::string& path, bool acts) {
  const Api::Route* const route = Api::Find(path);
  if (route == nullptr || route->acts != acts) {
    return absl::NotFoundError(absl::StrCat("the server does not know ", path));
  }
  return route;
}

void HttpServer::Read(const httplib::Request& request, httplib::Response& response) {
  const absl::StatusOr<SessionBook::Session> session = SessionOf(request);
  if (!session.ok()) return Refuse(session.status(), response);
  const absl::StatusOr<const Api::Route*> route = RouteOf(request.path, /*acts=*/false);
  if (!route.ok()) return Refuse(route.status(), response);
  Answer(api_->Answer(**route, TokenOf(request), ParametersOf(request.params)), response);
}

void HttpServer::Act(const httplib::Request& request, httplib::Response& response) {
  const absl::StatusOr<Parameters> parameters = CheckAction(request);
  if (!parameters.ok()) return Refuse(parameters.status(), response);
  const absl::StatusOr<const Api::Route*> route = RouteOf(request.path, /*acts=*/true);
  if (!route.ok()) return Refuse(route.status(), response);
  Answer(api_->Answer(**route, TokenOf(request), *parameters), response);
}

void HttpServer::Follow(const httplib::Request& request, httplib::Response& response) {
  const absl::StatusOr<SessionBook::Session> session = SessionOf(request);
  if (!session.ok()) return Refuse(session.status(), response);
  Parameters parameters = ParametersOf(request.params);
  const absl::StatusOr<const Api::Route*> route = RouteOf(parameters["path"], /*acts=*/false);
  if (!route.ok()) return Refuse(route.status(), response);
  if ((*route)->interval == absl::ZeroDuration()) {
    return Refuse(absl::InvalidArgumentError("path: it cannot be followed"), response);
  }
  if (++streams_ > options_.streams) {
    --streams_;
    return Refuse(absl::ResourceExhaustedError("too many pages are open: close some"), response);
  }
  parameters.erase("path");
  response.set_header("X-Accel-Buffering", "no");
  response.set_chunked_content_provider(
      "text/event-stream",
      [this, route = *route, token = TokenOf(request), parameters](size_t,
                                                                   httplib::DataSink& sink) {
        SendEvents(*route, token, parameters, sink);
        sink.done();
        return true;
      },
      [this](bool) { --streams_; });
}

void HttpServer::SendEvents(const Api::Route& route, const std::string& token,
                            const Parameters& parameters, httplib::DataSink& sink) {
  const SteadyClock clock;
  std::string last;
  absl::Time next = absl::InfinitePast();
  absl::Time written = absl::InfinitePast();
  while (!stopping_ && sink.is_writable()) {
    const absl::Time now = clock.Now();
    std::string text;
    bool ends = false;
    if (now >= next) {
      const absl::StatusOr<std::string> json = api_->Answer(route, token, parameters);
      ends = !json.ok();
      const std::string& data = json.ok() ? *json : ErrorJson(json.status());
      if (ends || data != last) {
        text = absl::StrCat("event: ", ends ? "failed" : "change", "\ndata: ", data, "\n\n");
      }
      last = data;
      next = std::max(now + route.interval, clock.Now() + kIdleShare * (clock.Now() - now));
    }
    if (text.empty() && now - written >= kHeartbeat) text = ":\n\n";
    if (!text.empty()) {
      if (!sink.write(text.data(), text.size()) || ends) return;
      written = now;
    }
    absl::SleepFor(kPoll);
  }
}

void HttpServer::File(const httplib::Request& request, httplib::Response& response) {
  const std::string name =
      request.matches[1].str().empty() ? "index.html" : request.matches[1].str();
  for (const PageFile& file : PageFiles()) {
    if (file.name != name) continue;
    for (const auto& [suffix, type] : kContentTypes) {
      if (!absl::EndsWith(name, suffix)) continue;
      return response.set_content(file.content.data(), file.content.size(), type);
    }
  }
  Refuse(absl::NotFoundError("no such file"), response);
}

}  // namespace hone::web
