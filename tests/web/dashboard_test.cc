// hone dashboard with a private server: the real programs.

#include <signal.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/process.h"
#include "tests/temporary_folder.h"

namespace hone::web {
namespace {

using ::testing::HasSubstr;

TEST(DashboardTest, OpensThePageOfThePrivateServerUntilCtrlC) {
  const integration::HoneHome home;
  integration::Process hone({"hone", "dashboard", "--json"}, home.variables());
  ASSERT_TRUE(integration::Eventually([&] { return absl::StrContains(hone.Output(), "\n"); }))
      << hone.Errors();
  const std::string url = integration::OneLineOfJson(hone.Output()).value("url", "");
  const size_t fragment = url.find("/#");
  ASSERT_NE(fragment, std::string::npos) << hone.Output();
  httplib::Client client(url.substr(0, fragment));
  const auto page = client.Get("/");
  ASSERT_TRUE(page);
  EXPECT_THAT(page->body, HasSubstr("app.js"));
  const auto begun = client.Post("/api/session", {{"x-hone-csrf", "-"}},
                                 absl::StrCat("{\"code\":\"", url.substr(fragment + 2), "\"}"),
                                 "application/json");
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->status, 200) << begun->body;
  const std::string cookie = begun->get_header_value("Set-Cookie");
  const auto jobs = client.Get("/api/jobs", {{"Cookie", cookie.substr(0, cookie.find(';'))}});
  ASSERT_TRUE(jobs);
  EXPECT_EQ(jobs->body, "{\"jobs\":[],\"next_page_token\":\"\"}");
  hone.Signal(SIGINT);
  EXPECT_EQ(hone.Wait(), 0) << hone.Errors();
  // The page ends with the server.
  EXPECT_TRUE(integration::Eventually([&] { return !client.Get("/"); }));
}

TEST(DashboardTest, AServerForATeamServesThePageOnItsAddress) {
  const TemporaryFolder folder;
  const std::string ready = folder / "ready";
  const int port = integration::FreePort();
  integration::Process server({"hone-server", "--listen", "localhost:0", "--store",
                               folder / "hone.db", "--ready-file", ready, "--web-listen",
                               absl::StrCat("localhost:", port)});
  std::string address;
  ASSERT_TRUE(integration::Eventually([&] {
    const std::string text = ReadFile(ready).value_or("");
    const size_t at = text.find("listen ");
    if (at == std::string::npos) return false;
    address = text.substr(at + 7, text.find('\n', at) - at - 7);
    return true;
  })) << server.Errors();
  const integration::Result opened =
      integration::RunProgram({"hone", "--server", address, "dashboard", "--no-browser"});
  EXPECT_EQ(opened.code, 0) << opened.errors;
  EXPECT_THAT(opened.output, HasSubstr(absl::StrCat("http://127.0.0.1:", port, "/#")));
  const integration::Result taken = integration::RunProgram(
      {"hone-server", "--listen", "localhost:0", "--store", folder / "other.db", "--web-listen",
       absl::StrCat("localhost:", port)});
  EXPECT_EQ(taken.code, 1);
  EXPECT_THAT(taken.errors, HasSubstr("web-listen"));
  const integration::Result open = integration::RunProgram(
      {"hone-server", "--listen", "localhost:0", "--store", folder / "other.db", "--check-config",
       "--web-listen", "0.0.0.0:7080"});
  EXPECT_EQ(open.code, 2);
  EXPECT_THAT(open.errors, HasSubstr("the page is never encrypted"));
}

}  // namespace
}  // namespace hone::web
