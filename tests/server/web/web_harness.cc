#include "tests/server/web/web_harness.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::web {

WebHarness::~WebHarness() { StopPage(); }

absl::Status WebHarness::StartWithPage(service::ServerOptions options,
                                       WebServer::Options page_options) {
  page_options.clock = &clock;
  HONE_ASSIGN_OR_RETURN(page, WebServer::Start(page_options));
  options.dashboard = page.get();
  HONE_RETURN_IF_ERROR(Start(std::move(options)));
  page->Serve(*server);
  return absl::OkStatus();
}

void WebHarness::StopPage() {
  if (page != nullptr) page->Stop();
  Stop();
}

absl::StatusOr<std::string> WebHarness::Link(bool may_act, std::shared_ptr<grpc::Channel> over) {
  v1::OpenDashboardRequest request;
  request.set_may_act(may_act);
  v1::OpenDashboardResponse response;
  const auto stub = v1::DashboardService::NewStub(over == nullptr ? channel : over);
  HONE_RETURN_IF_ERROR(rpc::FromGrpc(
      service::Call(*stub, &v1::DashboardService::Stub::OpenDashboard, request, &response)));
  return response.url();
}

void WebHarness::LogIn(bool may_act, std::shared_ptr<grpc::Channel> over) {
  HONE_ASSERT_OK_AND_ASSIGN(const std::string link, Link(may_act, std::move(over)));
  const std::string code = link.substr(link.find('#') + 1);
  const Answer answer =
      Post("/api/session", {{"code", code}}, /*csrf=*/false, {{"x-hone-csrf", "-"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto header = answer.headers.find("Set-Cookie");
  ASSERT_NE(header, answer.headers.end());
  cookie = header->second.substr(0, header->second.find(';'));
  csrf_ = Get("/api/session").json.value("csrf", "");
  ASSERT_EQ(csrf_.size(), 64u);
}

void WebHarness::AddWorkers(int count) {
  for (int i = 0; i < count; ++i) {
    v1::SynchronizeRequest hello = service::RemoteWorker::Hello(absl::StrFormat("worker-%04d", i));
    hello.set_max_wait_ms(0);
    v1::SynchronizeResponse response;
    ASSERT_THAT(service::Call(*working, &v1::WorkerService::Stub::Synchronize, hello, &response),
                IsOk());
  }
}

httplib::Client WebHarness::Http() const {
  httplib::Client client("127.0.0.1", page->port());
  client.set_read_timeout(60);
  return client;
}

WebHarness::Answer WebHarness::ToAnswer(const httplib::Result& result) {
  if (!result) {
    ADD_FAILURE() << "no answer: " << httplib::to_string(result.error());
    return {};
  }
  return {.status = result->status,
          .headers = result->headers,
          .body = result->body,
          .json = nlohmann::json::parse(result->body, nullptr, /*allow_exceptions=*/false)};
}

WebHarness::Answer WebHarness::Get(const std::string& path, httplib::Headers headers) const {
  if (!cookie.empty()) headers.emplace("Cookie", cookie);
  return ToAnswer(Http().Get(path, headers));
}

WebHarness::Answer WebHarness::Post(const std::string& path, const nlohmann::json& body, bool csrf,
                                    httplib::Headers headers) const {
  if (!cookie.empty()) headers.emplace("Cookie", cookie);
  if (csrf) headers.emplace("x-hone-csrf", csrf_);
  return ToAnswer(Http().Post(path, headers, body.dump(), "application/json"));
}

}  // namespace hone::web
