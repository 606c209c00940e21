#ifndef HONE_SERVER_WEB_API_H_
#define HONE_SERVER_WEB_API_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/tuning.grpc.pb.h"

namespace hone::web {

using Parameters = std::map<std::string, std::string>;

// What the page asks the server: the table of its routes, each of which makes calls of the gRPC
// services in this process, with the token of the session. So the services' gate decides what a
// session may do, and checks, counts and audits its calls as those of every other caller.
// Thread-safe.
class Api {
 public:
  // The texts of workloads by digest. NotFound: it is unknown.
  using FindText = std::function<absl::StatusOr<std::string>(const std::string& digest)>;
  Api(std::shared_ptr<grpc::Channel> channel, FindText find_text);

  struct Call {
    const Api& api;
    const std::string& token;  // of the session
    const Parameters& parameters;
  };
  struct Route {
    absl::string_view path;  // "/api/jobs"
    bool acts = false;       // POST; changes something
    // How often an event stream looks for changes at most; zero: it cannot follow this path.
    absl::Duration interval;
    // Returns JSON. Errors are those of the services.
    absl::StatusOr<std::string> (*answer)(const Call& call);
  };
  // Null: there is no such path.
  static const Route* Find(absl::string_view path);

  absl::StatusOr<std::string> Answer(const Route& route, const std::string& token,
                                     const Parameters& parameters) const;

  v1::TuningService::Stub& tuning() const { return *tuning_; }
  v1::AdminService::Stub& admin() const { return *admin_; }
  absl::StatusOr<std::string> Text(const std::string& digest) const { return find_text_(digest); }

 private:
  const std::unique_ptr<v1::TuningService::Stub> tuning_;
  const std::unique_ptr<v1::AdminService::Stub> admin_;
  const FindText find_text_;
};

}  // namespace hone::web

#endif  // HONE_SERVER_WEB_API_H_
