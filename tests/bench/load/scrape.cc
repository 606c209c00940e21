#include "tests/bench/load/scrape.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hone::load {

absl::StatusOr<Scrape> Scrape::Of(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const absl::Cleanup close_it = [fd] { close(fd); };
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(request.size())) {
    return absl::UnavailableError(absl::StrCat("no metrics on port ", port));
  }
  std::string answer;
  char buffer[65536];
  for (ssize_t got; (got = recv(fd, buffer, sizeof(buffer), 0)) > 0;) answer.append(buffer, got);
  if (!absl::StrContains(answer.substr(0, answer.find('\r')), " 200 ")) {
    return absl::UnavailableError(absl::StrCat("metrics: ", answer.substr(0, answer.find('\r'))));
  }
  return Parse(answer);
}

Scrape Scrape::Parse(absl::string_view text) {
  Scrape scrape;
  for (absl::string_view line : absl::StrSplit(text, absl::ByAnyChar("\r\n"), absl::SkipEmpty())) {
    const size_t space = line.rfind(' ');
    double value = 0;
    if (line[0] == '#' || space == line.npos || !absl::SimpleAtod(line.substr(space + 1), &value)) {
      continue;
    }
    scrape.values_[std::string(line.substr(0, space))] = value;
  }
  return scrape;
}

double Scrape::operator[](const std::string& name) const {
  auto found = values_.find(name);
  return found == values_.end() ? 0 : found->second;
}

double Scrape::Sum(const std::string& name) const {
  double sum = (*this)[name];
  const std::string labelled = name + "{";
  for (auto it = values_.lower_bound(labelled);
       it != values_.end() && absl::StartsWith(it->first, labelled); ++it) {
    sum += it->second;
  }
  return sum;
}

double Scrape::Quantile(const Scrape& earlier, const std::string& histogram, double q) const {
  std::map<double, double> classes;  // cumulative counts by upper bound
  const std::string prefix = histogram + "_bucket{le=\"";
  for (auto it = values_.lower_bound(prefix);
       it != values_.end() && absl::StartsWith(it->first, prefix); ++it) {
    const std::string bound = it->first.substr(prefix.size(), it->first.rfind('"') - prefix.size());
    double upper = INFINITY;
    if (bound == "+Inf" || absl::SimpleAtod(bound, &upper)) {
      classes[upper] = it->second - earlier[it->first];
    }
  }
  if (classes.empty() || classes.rbegin()->second <= 0) return 0;
  const double wanted = q * classes.rbegin()->second;
  double below = 0, lower = 0;
  for (const auto& [upper, count] : classes) {
    if (count >= wanted && count > below) {
      if (std::isinf(upper)) return INFINITY;
      return lower + (upper - lower) * (wanted - below) / (count - below);
    }
    below = count;
    lower = upper;
  }
  return INFINITY;
}

}  // namespace hone::load
