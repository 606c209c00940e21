// What a browser may ask the page's server, and what it may not.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/rpc/channel.h"
#include "common/rpc/listener.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/web/web_harness.h"
#include "tests/status.h"

namespace hone::web {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Tuning = v1::TuningService::Stub;

class WebServerTest : public ::testing::Test, protected WebHarness {
 protected:
  // Runs a job to its end and returns it.
  v1::Job Tune(int trials) {
    const service::RemoteWorker worker(Connect(), "w1");
    v1::Job job;
    EXPECT_TRUE(service::Call(*tuning, &Tuning::CreateJob, Request(trials), &job).ok());
    return WaitForEnd(job.id());
  }
};

TEST_F(WebServerTest, ServesItsFilesWithAStrictPolicy) {
  ASSERT_THAT(StartWithPage(), IsOk());
  const Answer page_file = Get("/");
  EXPECT_EQ(page_file.status, 200);
  EXPECT_THAT(page_file.body, AllOf(HasSubstr("<script type=\"module\" src=\"app.js\">"),
                                    Not(HasSubstr("http")), Not(HasSubstr("style="))));
  const std::string policy = page_file.headers.find("Content-Security-Policy")->second;
  EXPECT_THAT(policy,
              AllOf(HasSubstr("default-src 'none'"), HasSubstr("frame-ancestors 'none'"),
                    HasSubstr("require-trusted-types-for 'script'"), Not(HasSubstr("unsafe"))));
  EXPECT_EQ(page_file.headers.find("X-Content-Type-Options")->second, "nosniff");
  for (const char* file : {"app.js", "page.js", "charts.js", "jobs.js", "fleet.js", "records.js",
                           "kernel.js", "models.js"}) {
    const Answer script = Get(absl::StrCat("/", file));
    EXPECT_EQ(script.status, 200) << file;
    EXPECT_THAT(script.headers.find("Content-Type")->second, HasSubstr("text/javascript"));
    // What would need another policy, or could run a hostile name.
    EXPECT_THAT(script.body, AllOf(Not(HasSubstr("innerHTML")), Not(HasSubstr("eval(")),
                                   Not(HasSubstr("document.write"))))
        << file;
  }
  EXPECT_EQ(Get("/nothing.js").status, 404);
  EXPECT_EQ(Get("/../../etc/passwd").status, 404);
  EXPECT_NE(Get("/api/nothing").status, 200);
}

TEST_F(WebServerTest, NothingIsAnsweredWithoutASession) {
  ASSERT_THAT(StartWithPage(), IsOk());
  for (const char* path :
       {"/api/session", "/api/fleet", "/api/jobs", "/api/job?id=x", "/api/records", "/api/kernel",
        "/api/models", "/api/curve?id=x", "/api/events?path=/api/jobs"}) {
    EXPECT_EQ(Get(path).status, 401) << path;
  }
  for (const char* path :
       {"/api/cancel-job", "/api/drain-worker", "/api/pin-best", "/api/end-session"}) {
    EXPECT_EQ(Post(path, {}).status, 401) << path;
  }
  cookie = absl::StrCat("hone_session_", page->port(), "=", std::string(64, '0'));
  const Answer stale = Get("/api/jobs");
  EXPECT_EQ(stale.status, 401);
  EXPECT_THAT(stale.json.value("error", ""), HasSubstr("run hone dashboard again"));
}

TEST_F(WebServerTest, ALinkBeginsOneSessionThatScriptsCannotRead) {
  ASSERT_THAT(StartWithPage(), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const std::string link, Link(false));
  EXPECT_TRUE(absl::StartsWith(link, absl::StrCat("http://127.0.0.1:", page->port(), "/#")))
      << link;
  const std::string code = link.substr(link.find('#') + 1);
  // Only the page itself can send the header.
  EXPECT_EQ(Post("/api/session", {{"code", code}}, false).status, 403);
  const httplib::Headers own = {{"x-hone-csrf", "-"}};
  const Answer begun = Post("/api/session", {{"code", code}}, false, own);
  EXPECT_EQ(begun.status, 200);
  EXPECT_THAT(begun.headers.find("Set-Cookie")->second,
              AllOf(HasSubstr("HttpOnly"), HasSubstr("SameSite=Strict")));
  EXPECT_EQ(Post("/api/session", {{"code", code}}, false, own).status, 401);
  EXPECT_EQ(Post("/api/session", {{"code", "x"}}, false, own).status, 401);
  EXPECT_EQ(Post("/api/session", nlohmann::json::array(), false, own).status, 400);
}

TEST_F(WebServerTest, OtherOriginsAndNamesAreRefused) {
  ASSERT_THAT(StartWithPage(), IsOk());
  LogIn(true);
  EXPECT_EQ(Get("/api/jobs").status, 200);
  EXPECT_EQ(Get("/api/jobs", {{"Sec-Fetch-Site", "same-origin"}}).status, 200);
  for (const char* site : {"cross-site", "same-site", "none"}) {
    EXPECT_EQ(Get("/api/jobs", {{"Sec-Fetch-Site", site}}).status, 403) << site;
  }
  for (const char* host :
       {"evil.example", "evil.example:80", "10.0.0.1:7080", "localhost.evil.example"}) {
    EXPECT_EQ(Get("/", {{"Host", host}}).status, 403) << host;
  }
  for (const char* host : {"localhost:7080", "127.0.0.1", "[::1]:7080"}) {
    EXPECT_EQ(Get("/", {{"Host", host}}).status, 200) << host;
  }
}

TEST_F(WebServerTest, ASessionOnlyReadsUnlessItMayAct) {
  ASSERT_THAT(StartWithPage(), IsOk());
  const service::RemoteWorker worker(Connect(), "w1");
  ASSERT_TRUE(service::Eventually([&] {
    v1::ListWorkersResponse list;
    return service::Call(*tuning, &Tuning::ListWorkers, v1::ListWorkersRequest(), &list).ok() &&
           list.workers_size() == 1;
  }));
  LogIn(/*may_act=*/false);
  EXPECT_EQ(Get("/api/session").json.value("role", ""), "viewer");
  EXPECT_EQ(Get("/api/fleet").json["workers"][0]["id"], "w1");
  const Answer refused = Post("/api/drain-worker", {{"id", "w1"}});
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.json.value("error", ""), HasSubstr("has the role viewer"));
  LogIn(/*may_act=*/true);
  EXPECT_EQ(Get("/api/session").json.value("role", ""), "admin");
  EXPECT_EQ(Post("/api/drain-worker", {{"id", "w1"}}, /*csrf=*/false).status, 403);
  EXPECT_EQ(Get("/api/drain-worker?id=w1").status, 404);
  EXPECT_EQ(Post("/api/drain-worker", {{"id", {1, 2}}}).status, 400);
  EXPECT_EQ(Post("/api/drain-worker", {{"id", "other"}}).status, 404);
  EXPECT_FALSE(Get("/api/fleet").json["workers"][0]["draining"]);
  const Answer drained = Post("/api/drain-worker", {{"id", "w1"}});
  EXPECT_EQ(drained.status, 200) << drained.body;
  EXPECT_TRUE(Get("/api/fleet").json["workers"][0]["draining"]);
  EXPECT_EQ(Post("/api/end-session", nlohmann::json::object()).status, 200);
  EXPECT_EQ(Get("/api/fleet").status, 401);
}

TEST_F(WebServerTest, ASessionEndsWithItsTimeAndWithItsCallersToken) {
  const auto tokens = [](const std::string& lines) {
    return std::make_shared<const rpc::TokenTable>(*rpc::TokenTable::Parse(lines));
  };
  const std::string root = rpc::TokenLine({"root", rpc::Role::kAdmin}, "token-of-root");
  service::ServerOptions options;
  options.listen.push_back({*rpc::Address::Parse("127.0.0.1:0"), rpc::Role::kClient});
  options.tokens = tokens(root + rpc::TokenLine({"ann", rpc::Role::kClient}, "token-of-ann") +
                          rpc::TokenLine({"eve", rpc::Role::kViewer}, "token-of-eve"));
  options.audit_log = folder + "/audit.jsonl";
  ASSERT_THAT(StartWithPage(std::move(options)), IsOk());
  const auto dial = [&](const char* token) {
    return *rpc::CreateChannel(server->addresses()[1].ToText(), {.token = token});
  };
  LogIn(true, dial("token-of-ann"));
  EXPECT_EQ(Get("/api/session").json.value("role", ""), "client");
  EXPECT_EQ(Get("/api/jobs").status, 200);
  EXPECT_EQ(Post("/api/drain-worker", {{"id", "w1"}}).status, 403);  // for administrators
  EXPECT_EQ(Post("/api/cancel-job", {{"id", "none"}}).status, 404);
  EXPECT_THAT(ReadFile(folder + "/audit.jsonl").value_or(""),
              AllOf(HasSubstr("\"who\":\"ann\""), HasSubstr("CancelJob"), HasSubstr("in-process")));
  // The token of a session is of no use elsewhere.
  const std::string token = cookie.substr(cookie.find('=') + 1);
  v1::ListJobsResponse list;
  EXPECT_EQ(service::Call(*v1::TuningService::NewStub(dial(token.c_str())), &Tuning::ListJobs,
                          v1::ListJobsRequest(), &list)
                .error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  // A viewer only reads, also without the page.
  EXPECT_THAT(Link(true, dial("token-of-eve")).status(),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("may only read")));
  EXPECT_THAT(Link(false, dial("token-of-eve")).status(), IsOk());
  v1::Job job;
  EXPECT_EQ(service::Call(*v1::TuningService::NewStub(dial("token-of-eve")), &Tuning::CreateJob,
                          Request(4), &job)
                .error_code(),
            grpc::StatusCode::PERMISSION_DENIED);

  ASSERT_THAT(server->ReplaceTokens(tokens(root)), IsOk());
  EXPECT_EQ(Get("/api/jobs").status, 401);
  LogIn(false);
  EXPECT_EQ(Get("/api/jobs").status, 200);
  clock.Advance(SessionBook::kLifetime);
  EXPECT_EQ(Get("/api/jobs").status, 401);
}

TEST_F(WebServerTest, ShowsAJobItsCurveItsRecordsAndItsKernel) {
  ASSERT_THAT(StartWithPage(), IsOk());
  const v1::Job job = Tune(40);
  LogIn(false);
  const Answer jobs = Get("/api/jobs?page_size=10");
  ASSERT_EQ(jobs.json["jobs"].size(), 1u);
  EXPECT_EQ(jobs.json["jobs"][0]["state"], "JOB_STATE_DONE");
  EXPECT_EQ(Get(absl::StrCat("/api/job?id=", job.id())).json["trials"], job.trials());

  // The trials in one part, and again from where it ended.
  const Answer curve = Get(absl::StrCat("/api/curve?id=", job.id()));
  EXPECT_GE(curve.json["points"].size(), 40u);
  double best = 1e18;
  for (const auto& point : curve.json["points"]) best = std::min(best, point[2].get<double>());
  EXPECT_NEAR(best, job.best().latency_ns(), 0.01 * best);
  EXPECT_FALSE(curve.json["more"]);
  const std::string after = curve.json["after"];
  const Answer rest = Get(absl::StrCat("/api/curve?id=", job.id(), "&after=", after));
  EXPECT_TRUE(rest.json["points"].empty());
  EXPECT_EQ(rest.json["after"], after);

  // Pages of records.
  const Answer first = Get("/api/records?page_size=15&newest_first=true");
  ASSERT_EQ(first.json["records"].size(), 15u);
  EXPECT_TRUE(first.json["records"][0]["result"]["samples_ns"].empty());
  const Answer second = Get(absl::StrCat("/api/records?page_size=15&newest_first=true&page_token=",
                                         first.json["next_page_token"].get<std::string>()));
  EXPECT_LT(second.json["records"][0]["id"], first.json["records"][14]["id"]);
  const Answer sorted = Get("/api/records?order=RECORD_ORDER_LATENCY&page_size=2");
  ASSERT_EQ(sorted.json["records"].size(), 2u);
  EXPECT_EQ(sorted.json["orders"].size(), 7u);
  EXPECT_EQ(sorted.json["orders"][6], "RECORD_ORDER_LATENCY");
  EXPECT_LE(sorted.json["records"][0]["result"]["latency_ns"],
            sorted.json["records"][1]["result"]["latency_ns"]);
  EXPECT_EQ(Get("/api/records?order=RECORD_ORDER_LATENCY&operator=op").status, 400);
  EXPECT_EQ(Get("/api/records?outcome=crash").json["records"].size(), 0u);
  const Answer wrong = Get("/api/records?outcome=nonsense");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.json.value("error", ""), HasSubstr("outcome"));
  EXPECT_EQ(Get("/api/records?page_size=many").status, 400);

  const Answer of_job = Get(absl::StrCat("/api/kernel?job=", job.id()));
  EXPECT_EQ(of_job.status, 200) << of_job.body;
  EXPECT_EQ(of_job.json["best"]["latency_ns"], job.best().latency_ns());
  const Answer kernel =
      Get(absl::StrCat("/api/kernel?target=t&workload_digest=", job.workload_digest()));
  ASSERT_EQ(kernel.status, 200) << kernel.body;
  EXPECT_EQ(kernel.json["best"]["workload"], "fake op 12");
  EXPECT_FALSE(kernel.json["best"]["trace"].get<std::string>().empty());
  EXPECT_EQ(Get("/api/kernel?target=t&workload_digest=none").status, 404);
  EXPECT_EQ(Get("/api/kernel?job=none").status, 404);
  EXPECT_EQ(Get("/api/models").json["kinds"].size(), 2u);
}

TEST_F(WebServerTest, ABusyWorkerNamesItsLeases) {
  ASSERT_THAT(StartWithPage(), IsOk());
  service::RemoteWorker worker(channel, "w");
  worker.slow = 1;
  LogIn(false);
  v1::Job job;
  ASSERT_THAT(service::Call(*tuning, &v1::TuningService::Stub::CreateJob, Request(60), &job),
              IsOk());
  nlohmann::json activities;
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  while (activities.empty() && absl::Now() < limit) {
    activities = Get("/api/fleet").json["workers"][0]["activities"];
  }
  ASSERT_FALSE(activities.empty());
  EXPECT_EQ(activities[0]["job_id"], job.id());
  EXPECT_EQ(activities[0]["operator"], "op");
  EXPECT_EQ(activities[0]["running"], false);
  EXPECT_EQ(activities[0]["attempt"], 1);
  EXPECT_EQ(activities[0]["policy"], "screen");
  const int64_t age =
      absl::ToUnixMillis(absl::Now()) - activities[0]["since_unix_ms"].get<int64_t>();
  EXPECT_GE(age, -1000);
  EXPECT_LT(age, 60'000);
  worker.slow = 0;
}

TEST_F(WebServerTest, ListsAThousandWorkersAtOnce) {
  ASSERT_THAT(StartWithPage(), IsOk());
  AddWorkers(1000);
  LogIn(false);
  const absl::Time begin = absl::Now();
  const Answer fleet = Get("/api/fleet?page_size=1000");
  RecordProperty("milliseconds", absl::StrCat(absl::ToDoubleMilliseconds(absl::Now() - begin)));
  ASSERT_EQ(fleet.json["workers"].size(), 1000u);
  EXPECT_EQ(fleet.json["next_page_token"], "");
  // So much is parsed and shown in a moment.
  EXPECT_LT(fleet.body.size(), 2u << 20);
}

TEST_F(WebServerTest, AnEventStreamFollowsAPath) {
  WebServer::Options options;
  options.streams = 1;
  ASSERT_THAT(StartWithPage({}, options), IsOk());
  LogIn(false);
  const v1::Job job = Tune(4);
  httplib::Client client("127.0.0.1", page->port());
  std::string events;
  int busy = 0;
  const auto result = client.Get("/api/events?path=/api/jobs", {{"Cookie", cookie}},
                                 [&](const char* data, size_t size) {
                                   events.append(data, size);
                                   if (!absl::StrContains(events, "\n\n")) return true;
                                   // A second stream is too many.
                                   if (busy == 0) busy = Get("/api/events?path=/api/jobs").status;
                                   return false;
                                 });
  EXPECT_TRUE(absl::StartsWith(events, "event: change\ndata: {\"jobs\":[")) << events;
  EXPECT_THAT(events, HasSubstr(job.id()));
  EXPECT_EQ(busy, 429);
  // The stream that was closed makes room.
  ASSERT_TRUE(service::Eventually([&] {
    std::string failed;
    (void)client.Get("/api/events?path=/api/job&id=none", {{"Cookie", cookie}},
                     [&](const char* data, size_t size) {
                       failed.append(data, size);
                       return true;
                     });
    return absl::StartsWith(failed, "event: failed\ndata: {\"error\":");
  }));
  EXPECT_EQ(Get("/api/events?path=/api/records").status, 400);
  EXPECT_EQ(Get("/api/events?path=/api/cancel-job").status, 404);
  EXPECT_EQ(Get("/api/events").status, 404);
}

TEST_F(WebServerTest, APrivateServerServesThePageOnceItIsAskedFor) {
  WebServer::Options options;
  options.on_demand = true;
  ASSERT_THAT(StartWithPage({.private_mode = true}, options), IsOk());
  EXPECT_EQ(page->port(), 0);
  LogIn(true);
  EXPECT_NE(page->port(), 0);
  EXPECT_EQ(Get("/api/jobs").status, 200);
}

TEST_F(WebServerTest, AServerWithoutAPageSaysHowToGetOne) {
  ASSERT_THAT(Start(), IsOk());
  EXPECT_THAT(Link(false).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--web-listen")));
}

TEST_F(WebServerTest, AnAddressThatCannotBeUsedIsRefused) {
  EXPECT_THAT(WebServer::Start({.listen = *rpc::Address::Parse("unix:/tmp/x")}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("web-listen")));
  ASSERT_THAT(StartWithPage(), IsOk());
  EXPECT_THAT(WebServer::Start({.listen = {.host = "127.0.0.1", .port = page->port()}}).status(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("web-listen")));
}

}  // namespace
}  // namespace hone::web
