// The page in headless Chromium: real clicks and keys, in the light and the dark scheme, on wide
// and narrow screens, with hostile names, without a server, and after the end of a session.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/web/web_harness.h"
#include "tests/status.h"
#include "tests/web/browser.h"

namespace hone::web {
namespace {

using service::RemoteWorker;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Tuning = v1::TuningService::Stub;

constexpr char kHostile[] = "<img src=x onerror=\"window.hacked=1\">";

class PageTest : public ::testing::Test, protected WebHarness {
 protected:
  static void SetUpTestSuite() { browser_ = Browser::Start(&missing_).release(); }
  static void TearDownTestSuite() {
    delete browser_;
    browser_ = nullptr;
  }
  void SetUp() override {
    if (browser_ == nullptr) GTEST_SKIP() << missing_;
    browser_->Resize(1280, 900);
    browser_->SetScheme("light");
    ASSERT_THAT(StartWithPage(), IsOk());
    browser_->TakeErrors();
  }
  void TearDown() override {
    if (browser_ != nullptr) browser_->Open("about:blank");
  }

  void Enter(bool may_act = false) {
    HONE_ASSERT_OK_AND_ASSIGN(const std::string link, Link(may_act));
    browser_->Open(link);
    ASSERT_TRUE(browser_->Shows("h1", "Jobs"));
  }
  v1::Job Create(const v1::CreateJobRequest& request) {
    v1::Job job;
    EXPECT_THAT(service::Call(*tuning, &Tuning::CreateJob, request, &job), IsOk());
    return job;
  }
  static v1::CreateJobRequest Network(const std::string& name, int trials) {
    v1::CreateJobRequest request = Request(trials);
    request.clear_workload();
    request.mutable_network()->set_name(name);
    for (const char* workload : {"fake alpha 12", "fake beta 12", "fake gamma 12"}) {
      v1::NetworkTask& task = *request.mutable_network()->add_tasks();
      task.set_workload(workload);
      task.add_weights(2);
    }
    return request;
  }
  // Opens a view by its address in the page.
  void Go(const std::string& view) {
    browser_->Run(absl::StrCat("location.hash = '#/", view, "'"));
  }
  static std::string PageProblems() {
    std::string problems;
    for (const auto& problem : browser_->Run(ReadFile("tests/web/check_page.js").value())) {
      absl::StrAppend(&problems, problem.get<std::string>(), "\n");
    }
    return problems;
  }
  // Checks the page as it is in both schemes and on a narrow screen, and keeps what it looks like.
  static void Look(const std::string& name) {
    const std::filesystem::path folder =
        std::filesystem::path(integration::BinDir()).parent_path() / "tests/screenshots";
    std::filesystem::create_directories(folder);
    for (const char* scheme : {"light", "dark"}) {
      browser_->SetScheme(scheme);
      EXPECT_EQ(PageProblems(), "") << name << ", " << scheme;
      browser_->Screenshot(folder / absl::StrCat(name, "_", scheme, ".png"));
    }
    browser_->SetScheme("light");
    browser_->Resize(390, 844);
    EXPECT_EQ(PageProblems(), "") << name << ", narrow";
    browser_->Screenshot(folder / absl::StrCat(name, "_narrow.png"));
    browser_->Resize(1280, 900);
  }
  static std::string Errors() {
    std::string all;
    for (const std::string& error : browser_->TakeErrors()) absl::StrAppend(&all, error, "\n");
    return all;
  }

  static Browser* browser_;
  static std::string missing_;
};
Browser* PageTest::browser_ = nullptr;
std::string PageTest::missing_;

TEST_F(PageTest, AUserWalksThroughAllViews) {
  const RemoteWorker worker(Connect(), "w1");
  const v1::Job one = WaitForEnd(Create(Request(60)).id());
  v1::CreateJobRequest again = Request(20);
  again.set_seed(7);
  const v1::Job two = WaitForEnd(Create(again).id());
  const v1::Job network = WaitForEnd(Create(Network("resnet", 60)).id());
  for (int i = 0; i < 2; ++i) {
    v1::StoredModel model;
    ASSERT_THAT(service::Call(*tuning, &Tuning::TrainModel, v1::TrainModelRequest(), &model),
                IsOk());
  }

  Enter();
  // The code of the link is gone.
  EXPECT_TRUE(absl::EndsWith(browser_->Url(), "/#/jobs")) << browser_->Url();
  EXPECT_TRUE(browser_->Shows("header", "reads only"));
  EXPECT_TRUE(browser_->Shows("td", "resnet"));
  Look("jobs");

  browser_->Click("td a", one.id());
  EXPECT_TRUE(browser_->Shows("h1", "fake op 12"));
  EXPECT_TRUE(browser_->Shows("dd", "60, 0 dropped"));
  EXPECT_TRUE(browser_->Shows("figcaption", "best so far"));
  EXPECT_TRUE(browser_->Shows("svg text", "trials"));
  browser_->Click("input[value=time]");
  EXPECT_TRUE(browser_->Shows("svg text", "seconds since"));
  Look("job");

  browser_->Click("dd a", "Show the kernel");
  EXPECT_TRUE(browser_->Shows("h1", "op on t"));
  EXPECT_TRUE(browser_->Shows("pre", "fake op 12"));
  EXPECT_TRUE(browser_->Shows("h2", "What limits it"));
  Look("kernel");

  browser_->Click("dd a", "of this workload");
  EXPECT_TRUE(browser_->Shows("h1", "Records"));
  EXPECT_TRUE(browser_->Shows("caption", "50 records"));
  browser_->Click("th button", "latency");
  EXPECT_TRUE(browser_->Shows("th[aria-sort=ascending]", "latency"));
  EXPECT_TRUE(browser_->Shows("caption", "sorted by latency"));
  EXPECT_EQ(browser_->Run("return document.activeElement.textContent"), "latency ▲");
  // A workload on a target has indexes for numbers and latencies only.
  EXPECT_EQ(browser_->Run("return [...document.querySelectorAll('th button')].length"), 2);
  const auto sorted = browser_->Run(
      "return [...document.querySelectorAll('tbody tr')].map((row) => row.cells[4].textContent)"
      ".map((text) => parseFloat(text) * (text.endsWith('ns') ? 1 : 1000))");
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end())) << sorted.dump();
  Look("records");
  browser_->Click("a", "Next page");
  EXPECT_TRUE(browser_->Shows("a", "First page"));
  browser_->Type("input[name=workload_digest]", "");
  browser_->Type("input[name=operator]", "beta");
  browser_->Press(Browser::kEnter);
  EXPECT_TRUE(browser_->Lacks("td", "op"));
  EXPECT_TRUE(browser_->Shows("td", "beta"));
  browser_->Type("input[name=operator]", "none");
  browser_->Click("form button");
  EXPECT_TRUE(browser_->Shows("caption", "No records"));

  browser_->Click("nav a", "Jobs");
  EXPECT_TRUE(browser_->Shows("td", "resnet"));
  browser_->Click(absl::StrCat("input[aria-label='Select job ", one.id(), "']"));
  browser_->Click(absl::StrCat("input[aria-label='Select job ", two.id(), "']"));
  browser_->Click("button", "Compare the two selected jobs");
  EXPECT_TRUE(browser_->Shows("caption", "Comparison"));
  EXPECT_TRUE(browser_->Shows("figcaption", absl::StrCat("B: ", two.id())));
  Look("compare");

  Go(absl::StrCat("job?id=", network.id()));
  EXPECT_TRUE(browser_->Shows("h1", "resnet"));
  EXPECT_TRUE(browser_->Shows("caption", "3 tasks of the network"));
  EXPECT_TRUE(browser_->Shows("td a", "gamma"));
  EXPECT_TRUE(browser_->Lacks("dd a", "of this job")) << "the records are those of the tasks";
  Look("network");

  browser_->Click("nav a", "Fleet");
  EXPECT_TRUE(browser_->Shows("td", "w1"));
  EXPECT_TRUE(browser_->Shows("p", "1 worker: 1 idle"));
  Look("fleet");
  browser_->Click("nav a", "Learned");
  EXPECT_TRUE(browser_->Shows("h2", "Kinds of models"));
  EXPECT_TRUE(browser_->Shows("caption", "3 trained models"));
  EXPECT_TRUE(browser_->Shows("h3", "nearest on t"));
  Look("models");
  EXPECT_EQ(Errors(), "");
}

TEST_F(PageTest, AColumnSortsAllRecordsOnTheServer) {
  const RemoteWorker worker(Connect(), "w1");
  WaitForEnd(Create(Request(60)).id());
  WaitForEnd(Create(Network("resnet", 60)).id());
  Enter();
  browser_->Click("nav a", "Records");
  EXPECT_TRUE(browser_->Shows("th[aria-sort=descending]", "id")) << "the newest first";
  EXPECT_TRUE(browser_->Shows("td", "gamma"));
  const auto operators = [&] {
    return browser_->Run(
        "return [...document.querySelectorAll('tbody tr')].map((row) => row.cells[1].textContent)");
  };
  browser_->Click("th button", "operator");
  EXPECT_TRUE(browser_->Shows("caption", "50 records, sorted by operator"));
  std::vector<std::string> all;
  for (int page = 0;; ++page) {
    ASSERT_LT(page, 10);
    for (const auto& name : operators()) all.push_back(name.get<std::string>());
    if (browser_
            ->Run("return [...document.querySelectorAll('a')].every("
                  "(link) => link.textContent !== 'Next page')")
            .get<bool>()) {
      break;
    }
    const std::string before = browser_->Url();
    browser_->Click("a", "Next page");
    EXPECT_TRUE(browser_->Shows("a", "First page"));
    while (operators().empty() || browser_->Url() == before) absl::SleepFor(absl::Milliseconds(5));
    EXPECT_TRUE(browser_->Shows("th[aria-sort=ascending]", "operator"));
  }
  EXPECT_GE(all.size(), 120u);
  EXPECT_EQ(all.front(), "alpha");
  EXPECT_EQ(all.back(), "op");
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));

  // The keyboard sorts, keeps the focus, and sorts the other way round the next time.
  browser_->Click("a", "First page");
  EXPECT_TRUE(browser_->Shows("td", "alpha"));
  browser_->Run("document.querySelectorAll('th button')[1].focus()");
  browser_->Press(Browser::kSpace);
  EXPECT_TRUE(browser_->Shows("th[aria-sort=descending]", "operator"));
  EXPECT_TRUE(browser_->Shows("td", "op"));
  EXPECT_EQ(browser_->Run("return document.activeElement.textContent"), "operator ▼");
  browser_->Run("history.back()");
  EXPECT_TRUE(browser_->Shows("th[aria-sort=ascending]", "operator"));
  EXPECT_TRUE(browser_->Shows("td", "alpha"));
  // No index has outcomes, and with another filter only the number is left.
  EXPECT_TRUE(browser_->Lacks("th button", "outcome"));
  browser_->Type("input[name=operator]", "op");
  browser_->Press(Browser::kEnter);
  EXPECT_TRUE(browser_->Shows("caption", "can be sorted by id."));
  EXPECT_TRUE(browser_->Lacks("th button", "latency"));
  Look("records_sorted");
  EXPECT_EQ(Errors(), "");
}

TEST_F(PageTest, AWorkerShowsWhatItDoesNow) {
  RemoteWorker worker(Connect(), "w1");
  worker.slow = 1;
  const v1::Job job = Create(Request(200));
  Enter();
  browser_->Click("nav a", "Fleet");
  EXPECT_TRUE(browser_->Shows("td", "builds op, job " + job.id() + ", since "));
  EXPECT_TRUE(browser_->Shows("td", "more started"));
  Look("fleet_busy");
  worker.slow = 0;
  EXPECT_TRUE(browser_->Lacks("td", "builds op")) << "without a click";
  EXPECT_EQ(Errors(), "");
}

TEST_F(PageTest, ProposersAreShown) {
  RemoteWorker worker(Connect(), "w1");
  worker.slow = 1;
  v1::Job job = Create(Request(20));
  v1::ProposeRequest propose;
  propose.set_job(job.id());
  propose.set_proposer("model-7/beam");
  propose.add_traces("1,2,3");  // the fastest
  propose.add_traces("9,9,9");
  v1::ProposeResponse verdicts;
  ASSERT_THAT(service::Call(*tuning, &Tuning::Propose, propose, &verdicts), IsOk());
  propose.set_proposer("notebook");
  propose.set_traces(0, "8,8,8");
  ASSERT_THAT(service::Call(*tuning, &Tuning::Propose, propose, &verdicts), IsOk());
  Enter();
  Go(absl::StrCat("job?id=", job.id()));
  EXPECT_TRUE(browser_->Shows("caption", "Schedules that other programs have proposed"));
  EXPECT_TRUE(browser_->Shows("td", "model-7/beam"));
  worker.slow = 0;
  job = WaitForEnd(job.id());
  ASSERT_EQ(job.best().record().proposer(), "model-7/beam");
  EXPECT_TRUE(browser_->Shows("dd", "confirmed, proposed by model-7/beam)"));
  const auto rows = browser_->Run(
      "return [...document.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => "
      "cell.textContent))");
  ASSERT_EQ(rows.size(), 2u) << rows.dump();
  EXPECT_EQ(rows[0][0], "model-7/beam");
  EXPECT_EQ(rows[0][1], "2");
  EXPECT_EQ(rows[0][2], "2");
  EXPECT_EQ(rows[1][0], "notebook");
  EXPECT_EQ(rows[1][1], "1") << "the other one is known";
  browser_->Click("th button", "fastest");
  EXPECT_TRUE(browser_->Shows("th[aria-sort=ascending]", "fastest"));
  Look("proposers");
  browser_->Click("td a", "notebook");
  EXPECT_TRUE(browser_->Shows("h1", "Records"));
  EXPECT_TRUE(browser_->Shows("td", "notebook"));
  EXPECT_TRUE(browser_->Lacks("td", "model-7/beam"));
  EXPECT_EQ(browser_->Run("return document.querySelector('input[name=proposer]').value"),
            "notebook");
  Look("proposed_records");
  Go(absl::StrCat("kernel?job=", job.id()));
  EXPECT_TRUE(browser_->Shows("dt", "Proposed by"));
  EXPECT_TRUE(browser_->Shows("dd", "model-7/beam"));
  Go("jobs");
  EXPECT_TRUE(browser_->Shows("caption", "1 job, newest first"));
  EXPECT_EQ(Errors(), "");
}

TEST_F(PageTest, AKernelShowsItsCounters) {
  Enter();
  const auto show = [&](const std::string& found) {
    browser_->Run(
        absl::StrCat("const {explained} = await import('/kernel.js');"
                     "document.querySelector('main').replaceChildren(document.createElement('h1'), "
                     "...explained(",
                     found, ")); document.querySelector('h1').textContent = 'Why';"));
  };
  const std::string common =
      "estimate_cycles: 1000, cycle_ns: 0.5, terms: [{name: 'pipes', meaning: 'm', cycles: 1, "
      "gain: "
      "0.1}], near: [], ";
  show("{" + common +
       "not_counted: '', ratios: ["
       "{name: 'instructions per cycle', meaning: 'of each core', value: 2.512, missing: ''},"
       "{name: 'bytes from beyond L2', meaning: 'lines', value: 3071000, missing: '', estimate: "
       "12500}, {name: 'last-level misses', meaning: 'm', value: 0, missing: 'none here'}], "
       "counters: [{name: 'llc_misses', meaning: 'm', value: 0, missing: 'none here'}]}");
  EXPECT_TRUE(browser_->Shows("td", "2.512"));
  EXPECT_TRUE(browser_->Shows("td", "3.071 M"));
  EXPECT_TRUE(browser_->Shows("td", "12.5 k"));
  EXPECT_TRUE(browser_->Shows("p", "Missing: last-level misses, llc_misses: none here."));
  EXPECT_TRUE(browser_->Lacks("td", "llc_misses")) << "a missing value is not 0";
  Look("counters");
  show("{" + common + "not_counted: 'kernels of GPUs are not counted', ratios: [], counters: []}");
  EXPECT_TRUE(browser_->Shows("p", "No counters were measured: kernels of GPUs are not counted."));
  EXPECT_EQ(Errors(), "");
}

TEST_F(PageTest, AJobIsFollowedWhileItRuns) {
  RemoteWorker worker(Connect(), "w1");
  worker.slow = 1;
  const v1::Job job = Create(Request(200));
  Enter(/*may_act=*/true);
  browser_->Click("td a", job.id());
  EXPECT_TRUE(browser_->Shows("dd", "running"));
  EXPECT_TRUE(browser_->Shows("div", "no data yet"));
  worker.slow = 0;
  EXPECT_TRUE(browser_->Shows("dd", "done"));
  EXPECT_TRUE(browser_->Shows("dd", "200, 0 dropped"));
  EXPECT_TRUE(browser_->Shows("figcaption", "best so far"));
  EXPECT_EQ(Errors(), "");
}

TEST_F(PageTest, AThousandWorkersAreShownInPages) {
  AddWorkers(1000);
  Enter();
  browser_->Click("nav a", "Fleet");
  EXPECT_TRUE(browser_->Shows("caption", "Workers 1 to 100 of 1,000"));
  browser_->Click("button", "Next");
  EXPECT_TRUE(browser_->Shows("td", "worker-0100"));
  browser_->Type("input[type=search]", "worker-09");
  EXPECT_TRUE(browser_->Shows("caption", "Workers 1 to 100 of 100"));
  browser_->Click("th button", "worker");
  EXPECT_TRUE(browser_->Shows("th[aria-sort=ascending]", "worker"));
  Look("fleet_large");
  EXPECT_EQ(Errors(), "");
}

TEST_F(PageTest, AnOperatorActsAfterAQuestion) {
  RemoteWorker worker(Connect(), "w1");
  worker.slow = 1;
  const v1::Job job = Create(Request(200));
  Enter(/*may_act=*/true);
  EXPECT_TRUE(browser_->Shows("header", "acts as admin"));
  browser_->Click("td a", job.id());
  browser_->Click("button", "Cancel");
  browser_->AnswerDialog(false);
  EXPECT_TRUE(browser_->Shows("dd", "running"));
  browser_->Click("button", "Cancel");
  browser_->AnswerDialog(true);
  worker.slow = 0;
  EXPECT_TRUE(browser_->Shows("dd", "cancelled"));
  EXPECT_TRUE(browser_->Shows("button", "Resume"));
  browser_->Click("nav a", "Fleet");
  browser_->Click("td button", "Drain");
  browser_->AnswerDialog(true);
  EXPECT_TRUE(browser_->Shows("td", "drained"));
  Look("fleet_actions");
  EXPECT_EQ(Errors(), "");
}

TEST_F(PageTest, TheKeyboardIsEnough) {
  const RemoteWorker worker(Connect(), "w1");
  WaitForEnd(Create(Request(4)).id());
  Enter();
  EXPECT_TRUE(browser_->Shows("td", "done"));
  browser_->Press(Browser::kTab);
  EXPECT_EQ(browser_->Run("return document.activeElement.textContent"), "Skip to the content");
  for (int i = 0; i < 2; ++i) browser_->Press(Browser::kTab);
  EXPECT_EQ(browser_->Run("return document.activeElement.textContent"), "Fleet");
  EXPECT_NE(browser_->Run("return getComputedStyle(document.activeElement).outlineStyle"), "none");
  browser_->Press(Browser::kEnter);
  EXPECT_TRUE(browser_->Shows("td", "w1"));
  // After a change of the view, the content follows.
  EXPECT_EQ(browser_->Run("return document.activeElement.id"), "main");
  const auto reached = [&](const std::string& text) {
    for (int i = 0; i < 40; ++i) {
      browser_->Press(Browser::kTab);
      if (absl::StartsWith(
              browser_->Run("return document.activeElement.textContent").get<std::string>(), text))
        return true;
    }
    return false;
  };
  ASSERT_TRUE(reached("state"));
  browser_->Press(Browser::kSpace);
  EXPECT_TRUE(browser_->Shows("th[aria-sort=ascending]", "state"));
  EXPECT_EQ(browser_->Run("return document.activeElement.tagName"), "BUTTON");
  EXPECT_EQ(Errors(), "");
}

TEST_F(PageTest, HostileNamesAreText) {
  const RemoteWorker worker(Connect(), kHostile);
  const v1::Job job = WaitForEnd(Create(Network(kHostile, 12)).id());
  Enter(/*may_act=*/true);
  EXPECT_TRUE(browser_->Shows("td", kHostile));
  Go(absl::StrCat("job?id=", job.id()));
  EXPECT_TRUE(browser_->Shows("h1", kHostile));
  browser_->Click("nav a", "Fleet");
  EXPECT_TRUE(browser_->Shows("td", kHostile));
  Look("hostile");
  for (const char* view : {"job?id=%3Cimg%20src=x%20onerror=alert(1)%3E", "%3Cscript%3E",
                           "records?operator=%3Cscript%3E", "kernel?job=%22%3E%3Cscript%3E",
                           "compare?a=%3Cb%3E&b=javascript:1"}) {
    Go(view);
    EXPECT_TRUE(browser_->Shows("h1", "")) << view;
  }
  EXPECT_TRUE(browser_->Shows("p.bad", "job")) << "the last view";
  EXPECT_EQ(browser_->Run("return [document.images.length, typeof window.hacked]").dump(),
            "[0,\"undefined\"]");
  // The policy refuses what the page itself never does.
  EXPECT_EQ(browser_->Run("try { document.body.innerHTML = '<b>x</b>'; return 'set' } "
                          "catch { return 'refused' }"),
            "refused");
}

TEST_F(PageTest, SaysThatTheServerIsDeadAndGoesOn) {
  std::optional<RemoteWorker> worker(std::in_place, Connect(), "w1");
  WaitForEnd(Create(Request(4)).id());
  Enter();
  EXPECT_TRUE(browser_->Shows("td", "done"));
  EXPECT_EQ(Errors(), "");
  const int port = page->port();
  worker.reset();
  StopPage();
  page.reset();
  EXPECT_TRUE(browser_->Shows("#status", "The server does not answer"));
  EXPECT_TRUE(browser_->Shows("td", "done")) << "what was read stays";
  Look("dead");
  // The next server does not know the session.
  WebServer::Options options;
  options.listen.port = port;
  ASSERT_THAT(StartWithPage({}, options), IsOk());
  EXPECT_TRUE(browser_->Shows("#status", "run hone dashboard again"));
  Enter();
  EXPECT_TRUE(browser_->Shows("td", "done"));
  EXPECT_TRUE(browser_->Lacks("#status", "run hone dashboard again"));
}

TEST_F(PageTest, SaysThatTheSessionHasEnded) {
  Enter();
  browser_->Click("nav a", "Fleet");
  EXPECT_TRUE(browser_->Shows("caption", "No workers"));
  clock.Advance(SessionBook::kLifetime);
  EXPECT_TRUE(browser_->Shows("#status", "this session has ended"));
  HONE_ASSERT_OK_AND_ASSIGN(const std::string link, Link(false));
  browser_->Open("about:blank");
  browser_->Open(link.substr(0, link.find('#')));
  EXPECT_TRUE(browser_->Shows("p.bad", "run hone dashboard again"));
  Look("ended");
  browser_->Open(link);
  EXPECT_TRUE(browser_->Shows("h1", "Jobs"));
  browser_->Click("button", "End session");
  EXPECT_TRUE(browser_->Shows("p.bad", "run hone dashboard again"));
}

TEST_F(PageTest, TheRooflineShowsWhatLimitsAKernel) {
  Enter();
  const auto text = [&](const std::string& best) {
    return browser_
        ->Run(absl::StrCat(
            "const {roofline} = await import('/charts.js');"
            "const element = roofline({best: ",
            best,
            ", flops: 2e9, bytes: 1e7});"
            "document.querySelector('main').replaceChildren(document.createElement('h1'), element);"
            "document.querySelector('h1').textContent = 'Roofline'; return element.outerHTML"))
        .get<std::string>();
  };
  EXPECT_THAT(text("{peak_gflops: 0, gflops: 5}"), HasSubstr("one is unknown"));
  EXPECT_THAT(text("{peak_gflops: 480, read_gbps: 20, gflops: 410}"),
              HasSubstr("410.0 GFLOP/s at 200.00 operations per byte; peak 480.0"));
  Look("roofline");
  EXPECT_EQ(Errors(), "");
}

}  // namespace
}  // namespace hone::web
