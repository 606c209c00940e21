#ifndef HONE_SERVER_WEB_HTTP_SERVER_H_
#define HONE_SERVER_WEB_HTTP_SERVER_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/address.h"
#include "httplib.h"
#include "server/web/api.h"
#include "server/web/session_book.h"

namespace hone::web {

// The HTTP side of the page: its files, the requests to /api, and the checks of who sends them.
// Every request to /api needs the cookie of a session; a POST also needs the session's secret in
// the header x-hone-csrf, which no other page can send. Requests for a host that is not this
// machine are refused, unless the page is open to others.
class HttpServer {
 public:
  struct Options {
    bool insecure = false;  // other machines may reach the address
    int threads = 1;        // connections at the same time
    int streams = 0;        // of them, event streams
  };
  // `sessions` outlives this object.
  HttpServer(const Options& options, SessionBook* sessions);
  ~HttpServer() { Stop(); }

  // AlreadyExists, Unavailable: the address cannot be used. REQUIRES: called once.
  absl::Status Listen(const rpc::Address& address);
  // Answers requests from now on, in threads of its own. REQUIRES: it listens.
  void Start(std::unique_ptr<const Api> api);
  // Ends event streams, and returns when no request is being answered.
  void Stop();

  int port() const { return port_; }
  const std::string& url() const { return url_; }  // "http://127.0.0.1:7080/"

 private:
  static void Refuse(const absl::Status& error, httplib::Response& response);
  std::string CookieName() const;
  std::string TokenOf(const httplib::Request& request) const;
  // Refuses pages of other origins and names that only resolve to this machine.
  absl::Status CheckOrigin(const httplib::Request& request) const;
  absl::StatusOr<SessionBook::Session> SessionOf(const httplib::Request& request) const;
  // The parameters of an action, if the page itself sent it.
  absl::StatusOr<Parameters> CheckAction(const httplib::Request& request) const;
  // Begins a session with the code of a link. Needs a header that pages elsewhere cannot send, so
  // that they cannot begin a session of theirs in this browser.
  void Begin(const httplib::Request& request, httplib::Response& response);
  void End(const httplib::Request& request, httplib::Response& response);
  void Describe(const httplib::Request& request, httplib::Response& response);
  // The route of a path that exists and is of this kind.
  static absl::StatusOr<const Api::Route*> RouteOf(const std::string& path, bool acts);
  void Read(const httplib::Request& request, httplib::Response& response);
  void Act(const httplib::Request& request, httplib::Response& response);
  // Sends what a path returns, and again whenever it has changed: events "change" with the JSON,
  // and one event "failed" with an error, which ends the stream.
  void Follow(const httplib::Request& request, httplib::Response& response);
  void SendEvents(const Api::Route& route, const std::string& token, const Parameters& parameters,
                  httplib::DataSink& sink);
  void File(const httplib::Request& request, httplib::Response& response);

  const Options options_;
  SessionBook* const sessions_;
  httplib::Server server_;
  int port_ = 0;
  std::string url_;
  std::unique_ptr<const Api> api_;  // set before the thread starts
  std::atomic<int> streams_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace hone::web

#endif  // HONE_SERVER_WEB_HTTP_SERVER_H_
