#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/fleet/health_check.h"
#include "client/cli/session.h"
#include "common/rpc/address.h"
#include "common/rpc/certificate.h"
#include "common/rpc/tls_probe.h"

namespace hone::cli {
namespace {

using State = HealthCheck::State;

constexpr absl::Duration kProbeLimit = absl::Seconds(5);
constexpr absl::Duration kSoon = absl::Hours(24 * 30);
constexpr absl::Duration kLargeSkew = absl::Seconds(5);

void CheckLifetime(absl::string_view whose, const rpc::CertificateFacts& facts,
                   HealthCheck& check) {
  const absl::Time now = absl::Now();
  if (const absl::Status valid = rpc::CheckLifetime(whose, facts, now); !valid.ok()) {
    check.state = State::kProblem;
    check.finding = std::string(valid.message());
    return;
  }
  if (facts.not_after - now > kSoon) return;
  check.state = State::kWarning;
  check.advice = absl::StrCat("the certificate expires on ", rpc::FormatDay(facts.not_after),
                              "; replace it before then");
}

HealthCheck CheckEncryption(const Globals& globals) {
  HealthCheck check{"encryption", State::kOk, "not needed on a Unix socket"};
  const absl::StatusOr<rpc::Address> address = rpc::Address::Parse(globals.server);
  if (address.ok() && address->IsUnix()) return check;
  if (!globals.security.tls()) {
    check.finding = "none: all data is sent as plain text";
    if (address.ok() && address->IsLocal()) return check;
    check.state = State::kWarning;
    check.advice =
        "give the server a certificate (hone-server init), and name its authority here (--ca)";
    return check;
  }
  const absl::StatusOr<rpc::TlsFinding> found =
      rpc::ProbeTls(globals.server, globals.security, kProbeLimit);
  if (!found.ok()) {
    check.state = State::kProblem;
    check.finding = std::string(found.status().message());
    check.advice = "no call can succeed until this is fixed";
    return check;
  }
  check.finding =
      absl::StrCat(found->protocol, "; the server is ", found->server.subject, ", certified by ",
                   found->server.issuer, " until ", rpc::FormatDay(found->server.not_after));
  CheckLifetime("the server's certificate", found->server, check);
  return check;
}

// The name and the role in a certificate.
std::string CallerOf(const std::string& uri) {
  const absl::StatusOr<rpc::Identity> identity = rpc::IdentityFromUri(uri);
  return identity.ok()
             ? absl::StrCat(identity->name, " with the role ", rpc::RoleName(identity->role))
             : uri;
}

HealthCheck CheckIdentity(const Globals& globals) {
  HealthCheck check{"identity", State::kOk, "none"};
  const rpc::ChannelSecurity& security = globals.security;
  if (!security.token.empty()) check.finding = "a token is sent";
  if (!security.identity.certificate.empty()) {
    const auto facts = rpc::DescribeCertificate(security.identity.certificate);
    if (facts.ok()) {
      check.finding = absl::StrCat(security.token.empty() ? "" : "a token is sent, and ",
                                   "a certificate is used: ", CallerOf(facts->uri),
                                   ", valid until ", rpc::FormatDay(facts->not_after));
      CheckLifetime("our own certificate", *facts, check);
    }
  }
  return check;
}

}  // namespace

std::vector<HealthCheck> CheckSecurity(const Globals& globals) {
  std::vector<HealthCheck> checks = {CheckEncryption(globals), CheckIdentity(globals)};
  if (checks[0].state == State::kProblem) return checks;
  const absl::StatusOr<std::unique_ptr<Session>> session = Session::Open(globals);
  if (!session.ok()) return checks;
  const absl::StatusOr<absl::Duration> skew = (*session)->connection().ClockSkew();
  if (absl::IsUnauthenticated(skew.status()) || absl::IsPermissionDenied(skew.status())) {
    checks[1].state = State::kProblem;
    checks[1].finding = std::string(skew.status().message());
    checks[1].advice = "ask the server's administrator for a token or a certificate";
  }
  if (!skew.ok()) return checks;
  HealthCheck clock{
      "clock", State::kOk,
      absl::StrFormat("%.1f s %s the server's", absl::ToDoubleSeconds(absl::AbsDuration(*skew)),
                      *skew < absl::ZeroDuration() ? "ahead of" : "behind")};
  if (absl::AbsDuration(*skew) > kLargeSkew) {
    clock.state = State::kWarning;
    clock.advice =
        "certificates may seem expired or not yet valid; synchronize both clocks with NTP";
  }
  checks.push_back(clock);
  return checks;
}

}  // namespace hone::cli
