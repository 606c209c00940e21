#ifndef HONE_TESTS_SERVER_WEB_WEB_HARNESS_H_
#define HONE_TESTS_SERVER_WEB_WEB_HARNESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "hone/v1/dashboard.grpc.pb.h"
#include "httplib.h"
#include "nlohmann/json.hpp"
#include "server/web/web_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/service/service_harness.h"

namespace hone::web {

// A server with its page, and a browser without a screen: it keeps the cookie of its session.
class WebHarness : public service::ServiceHarness {
 public:
  ~WebHarness();

  // Starts the server on the socket, and the page on any port of this machine.
  absl::Status StartWithPage(service::ServerOptions options = {},
                             WebServer::Options page_options = {});
  void StopPage();
  // The link that OpenDashboard returns. `channel`: null for the one on the socket, whose caller
  // may do everything.
  absl::StatusOr<std::string> Link(bool may_act, std::shared_ptr<grpc::Channel> over = nullptr);
  // Begins a session with a new link; later requests belong to it.
  void LogIn(bool may_act, std::shared_ptr<grpc::Channel> over = nullptr);

  // Registers workers that then do nothing: "worker-0000", …
  void AddWorkers(int count);

  struct Answer {
    int status = 0;
    httplib::Headers headers;
    std::string body;
    nlohmann::json json;  // discarded if the body is not JSON
  };
  Answer Get(const std::string& path, httplib::Headers headers = {}) const;
  // `csrf`: whether the request has the session's secret.
  Answer Post(const std::string& path, const nlohmann::json& body, bool csrf = true,
              httplib::Headers headers = {}) const;

  FakeClock clock;  // of sessions
  std::unique_ptr<WebServer> page;
  std::string cookie;  // "name=token"; "" without a session

 private:
  httplib::Client Http() const;
  static Answer ToAnswer(const httplib::Result& result);
  std::string csrf_;
};

}  // namespace hone::web

#endif  // HONE_TESTS_SERVER_WEB_WEB_HARNESS_H_
