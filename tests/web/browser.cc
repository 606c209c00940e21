#include "tests/web/browser.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/status.h"

namespace hone::web {
namespace {

using Json = nlohmann::json;

constexpr char kElementKey[] = "element-6066-11e4-a52e-4f735466cecf";
constexpr absl::Duration kPatience = absl::Seconds(30);

// The first of these files that exists, or "".
std::string FirstOf(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

}  // namespace

std::unique_ptr<Browser> Browser::Start(std::string* why) {
  const std::string driver = FirstOf({"/usr/bin/chromedriver"});
  const std::string chromium = FirstOf({"/usr/bin/chromium"});
  if (driver.empty() || chromium.empty()) {
    *why = "chromium and chromium-driver are not installed (deploy/install-deps.sh installs them)";
    return nullptr;
  }
  auto browser = std::unique_ptr<Browser>(new Browser(driver));
  const std::string profile = browser->folder_ / "profile";
  // The sandbox needs rights that containers lack; the browser only sees the page under test.
  const Json arguments = {"--headless=new",          "--no-sandbox",
                          "--disable-dev-shm-usage", "--disable-gpu",
                          "--no-first-run",          "--disable-background-networking",
                          "--hide-scrollbars",       absl::StrCat("--user-data-dir=", profile)};
  const Json capabilities = {{"browserName", "chrome"},
                             {"goog:chromeOptions", {{"binary", chromium}, {"args", arguments}}},
                             {"goog:loggingPrefs", {{"browser", "ALL"}}}};
  Json begun;
  browser->Eventually([&] {
    httplib::Client client("127.0.0.1", browser->port_);
    client.set_read_timeout(60);
    const auto result =
        client.Post("/session", Json({{"capabilities", {{"alwaysMatch", capabilities}}}}).dump(),
                    "application/json");
    if (result) begun = Json::parse(result->body, nullptr, false);
    return static_cast<bool>(result);
  });
  if (!begun.is_object() || !begun["value"].contains("sessionId")) {
    *why = absl::StrCat("Chromium does not start: ", begun.dump());
    return nullptr;
  }
  browser->session_ = absl::StrCat("/session/", begun["value"]["sessionId"].get<std::string>());
  return browser;
}

Browser::Browser(const std::string& driver)
    : port_(integration::FreePort()),
      driver_({driver, absl::StrCat("--port=", port_)}, {{"HOME", folder_.path()}}) {}

Browser::~Browser() {
  if (session_.empty()) return;
  httplib::Client client("127.0.0.1", port_);
  (void)client.Delete(session_);  // ends Chromium
}

bool Browser::Eventually(const std::function<bool()>& condition) const {
  return integration::Eventually(condition, kPatience);
}

Json Browser::Send(const std::string& path, const Json& body) {
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(60);
  const std::string whole = absl::StrCat(session_, path);
  const auto result =
      body.is_null() ? client.Get(whole) : client.Post(whole, body.dump(), "application/json");
  const Json answer =
      result ? Json::parse(result->body, nullptr, /*allow_exceptions=*/false) : Json();
  if (!result || result->status != 200) {
    ADD_FAILURE() << path << " " << body.dump().substr(0, 300) << ": "
                  << (result ? result->body.substr(0, 600) : "no answer");
    return {};
  }
  return answer["value"];
}

std::vector<std::string> Browser::Find(const std::string& selector) {
  std::vector<std::string> found;
  for (const Json& element : Send("/elements", {{"using", "css selector"}, {"value", selector}})) {
    found.push_back(element[kElementKey]);
  }
  return found;
}

std::string Browser::TextOf(const std::string& element) {
  // The element may be gone by now, which is no failure.
  httplib::Client client("127.0.0.1", port_);
  const auto result = client.Get(absl::StrCat(session_, "/element/", element, "/text"));
  if (!result || result->status != 200) return "";
  return Json::parse(result->body)["value"];
}

void Browser::Open(const std::string& url) { Send("/url", {{"url", url}}); }
std::string Browser::Url() { return Send("/url", nullptr); }

bool Browser::Shows(const std::string& selector, const std::string& text) {
  return Eventually([&] {
    for (const std::string& element : Find(selector)) {
      if (absl::StrContains(TextOf(element), text)) return true;
    }
    return false;
  });
}

bool Browser::Lacks(const std::string& selector, const std::string& text) {
  return Eventually([&] {
    for (const std::string& element : Find(selector)) {
      if (absl::StrContains(TextOf(element), text)) return false;
    }
    return true;
  });
}

void Browser::Click(const std::string& selector) {
  const bool clicked = Eventually([&] {
    const std::vector<std::string> found = Find(selector);
    if (found.empty()) return false;
    // A view that has just been drawn again has another element.
    httplib::Client client("127.0.0.1", port_);
    const auto result = client.Post(absl::StrCat(session_, "/element/", found[0], "/click"), "{}",
                                    "application/json");
    return result && result->status == 200;
  });
  EXPECT_TRUE(clicked) << "cannot click " << selector;
}

void Browser::Click(const std::string& selector, const std::string& text) {
  const bool clicked = Eventually([&] {
    for (const std::string& element : Find(selector)) {
      if (TextOf(element) != text) continue;
      httplib::Client client("127.0.0.1", port_);
      const auto result = client.Post(absl::StrCat(session_, "/element/", element, "/click"), "{}",
                                      "application/json");
      return result && result->status == 200;
    }
    return false;
  });
  EXPECT_TRUE(clicked) << "cannot click " << selector << " with " << text;
}

void Browser::Type(const std::string& selector, const std::string& text) {
  const std::vector<std::string> found = Find(selector);
  ASSERT_FALSE(found.empty()) << selector;
  Send(absl::StrCat("/element/", found[0], "/clear"), Json::object());
  Send(absl::StrCat("/element/", found[0], "/value"), {{"text", text}});
}

void Browser::Press(const std::string& key) {
  Send("/actions",
       {{"actions",
         {{{"type", "key"},
           {"id", "keyboard"},
           {"actions",
            {{{"type", "keyDown"}, {"value", key}}, {{"type", "keyUp"}, {"value", key}}}}}}}});
}

void Browser::AnswerDialog(bool accept) {
  Send(accept ? "/alert/accept" : "/alert/dismiss", Json::object());
}

void Browser::Resize(int width, int height) {
  Send("/goog/cdp/execute",
       {{"cmd", "Emulation.setDeviceMetricsOverride"},
        {"params",
         {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", false}}}});
}

void Browser::SetScheme(const std::string& scheme) {
  Send("/goog/cdp/execute",
       {{"cmd", "Emulation.setEmulatedMedia"},
        {"params", {{"features", {{{"name", "prefers-color-scheme"}, {"value", scheme}}}}}}});
}

// Evaluates in the browser's debugger, to which the policy of the page does not apply.
Json Browser::Run(const std::string& body) {
  const Json result =
      Send("/goog/cdp/execute", {{"cmd", "Runtime.evaluate"},
                                 {"params",
                                  {{"expression", absl::StrCat("(async () => {", body, "})()")},
                                   {"awaitPromise", true},
                                   {"returnByValue", true}}}});
  if (!result.is_object() || result.contains("exceptionDetails")) {
    ADD_FAILURE() << result.dump();
    return {};
  }
  return result["result"].value("value", Json());
}

std::vector<std::string> Browser::TakeErrors() {
  std::vector<std::string> errors;
  for (const Json& entry : Send("/se/log", {{"type", "browser"}})) {
    if (entry["level"] == "SEVERE" || entry["level"] == "WARNING")
      errors.push_back(entry["message"]);
  }
  return errors;
}

void Browser::Screenshot(const std::string& path) {
  std::string png;
  const Json shot = Send("/screenshot", nullptr);
  ASSERT_TRUE(shot.is_string() && absl::Base64Unescape(shot.get<std::string>(), &png));
  ASSERT_THAT(WriteFileAtomically(path, png, Durability::kProcess), IsOk());
}

}  // namespace hone::web
