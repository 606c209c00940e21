#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/service/call_observer.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The response to GET /metrics.
std::string Scrape(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t size; (size = read(fd, buffer, sizeof(buffer))) > 0;) answer.append(buffer, size);
  close(fd);
  return answer;
}

TEST(MetricsTest, ExportsCountersAndServerState) {
  HONE_ASSERT_OK_AND_ASSIGN(auto metrics, Metrics::Start(*rpc::Address::Parse("localhost:0")));
  metrics->OnCall("/hone.v1.TuningService/GetJob", grpc::StatusCode::OK, absl::Milliseconds(3));
  metrics->OnCall("/hone.v1.TuningService/GetJob", grpc::StatusCode::NOT_FOUND,
                  absl::Milliseconds(1));
  for (int i = 0; i < 3; ++i) {
    metrics->OnRefusal("/hone.v1.TuningService/GetJob", "TOKEN_UNKNOWN");
  }
  metrics->OnRefusedConnection("connections_of_host");
  metrics->OnSynchronize(absl::Microseconds(300));
  metrics->OnResult(record::Outcome::kOk);
  metrics->Watch([]() -> std::vector<ServerMetric> {
    return {{"hone_workers", "Workers.", "state", {{"connected", 3}, {"away", 4}}},
            {"hone_store_bytes", "Size.", "", {{"", 4096}}},
            {"hone_reads_refused_total", "Refused.", "lane", {{"long", 13}}, /*is_total=*/true}};
  });
  const std::string text = Scrape(metrics->port());
  for (const char* line : {
           "hone_calls_total{code=\"0\",method=\"GetJob\"} 1",
           "hone_calls_total{code=\"5\",method=\"GetJob\"} 1",
           "hone_refused_calls_total{method=\"GetJob\",reason=\"TOKEN_UNKNOWN\"} 3",
           "hone_refused_connections_total{reason=\"connections_of_host\"} 1",
           "hone_reads_refused_total{lane=\"long\"} 13",
           "hone_call_seconds_count{method=\"GetJob\"} 2",
           "hone_synchronize_handling_seconds_count 1",
           "hone_synchronize_handling_seconds_bucket{le=\"0.0005\"} 1",
           "hone_trials_total{outcome=\"ok\"} 1",
           "hone_workers{state=\"connected\"} 3",
           "hone_workers{state=\"away\"} 4",
           "# TYPE hone_store_bytes gauge",
           "# TYPE hone_reads_refused_total counter",
           "hone_store_bytes 4096",
           "hone_last_backup_timestamp_seconds 0\n",
           "process_resident_memory_bytes ",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  // metrics.md lists every metric; those of Server: ServerTest.EveryMetricIsDescribed.
  const std::string readme = ReadFile("server/service/metrics.md").value();
  int listed = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, "# TYPE ")) continue;
    const std::string name(line.substr(0, line.find(' ')));
    if (absl::StartsWith(name, "exposer_")) continue;  // metrics of the library
    ++listed;
    EXPECT_THAT(readme, HasSubstr(absl::StrCat("`", name, "`")));
  }
  EXPECT_GE(listed, 9);
  metrics->Watch(nullptr);
  EXPECT_THAT(Scrape(metrics->port()), Not(HasSubstr("hone_workers")));
}

TEST(MetricsTest, ACompleteBackupHasATime) {
  HONE_ASSERT_OK_AND_ASSIGN(auto metrics, Metrics::Start(*rpc::Address::Parse("localhost:0")));
  const std::string backup = "/hone.v1.AdminService/BackupStore";
  metrics->OnCall(backup, grpc::StatusCode::ALREADY_EXISTS, absl::Milliseconds(1));
  EXPECT_THAT(Scrape(metrics->port()), HasSubstr("hone_last_backup_timestamp_seconds 0\n"));
  metrics->OnCall(backup, grpc::StatusCode::OK, absl::Milliseconds(1));
  EXPECT_THAT(Scrape(metrics->port()), Not(HasSubstr("hone_last_backup_timestamp_seconds 0\n")));
}

TEST(MetricsTest, AnAddressInUseIsRefused) {
  HONE_ASSERT_OK_AND_ASSIGN(auto first, Metrics::Start(*rpc::Address::Parse("127.0.0.1:0")));
  EXPECT_THAT(Metrics::Start({.host = "127.0.0.1", .port = first->port()}),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(Metrics::Start({.path = "/tmp/x"}), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone::service
