#ifndef HONE_TESTS_WEB_BROWSER_H_
#define HONE_TESTS_WEB_BROWSER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "tests/integration/process.h"
#include "tests/temporary_folder.h"

namespace hone::web {

// A headless Chromium, driven by chromedriver (WebDriver over HTTP): clicks and keys are those of a
// user. Selectors are of CSS. A step that cannot be done is a failure of the test.
class Browser {
 public:
  // Returns null if this machine has no Chromium; `why` then says what is missing.
  static std::unique_ptr<Browser> Start(std::string* why);
  ~Browser();

  void Open(const std::string& url);
  std::string Url();
  // Waits until an element with this text exists, in the whole page if `selector` is "body".
  bool Shows(const std::string& selector, const std::string& text);
  bool Lacks(const std::string& selector, const std::string& text);
  void Click(const std::string& selector);
  // Clicks the first element with exactly this text.
  void Click(const std::string& selector, const std::string& text);
  void Type(const std::string& selector, const std::string& text);
  void Press(const std::string& key);  // of the keyboard, in WebDriver's code, such as kTab
  void AnswerDialog(bool accept);
  void Resize(int width, int height);
  // "dark" or "light"
  void SetScheme(const std::string& scheme);
  // The result of the body of a function; it may be a promise.
  nlohmann::json Run(const std::string& body);
  // Errors on the console since the last call.
  std::vector<std::string> TakeErrors();
  // Writes what is visible to a PNG file.
  void Screenshot(const std::string& path);

  static constexpr char kTab[] = "\xee\x80\x84";
  static constexpr char kEnter[] = "\xee\x80\x87";
  static constexpr char kSpace[] = "\xee\x80\x8d";

 private:
  explicit Browser(const std::string& driver);
  nlohmann::json Send(const std::string& path, const nlohmann::json& body);
  // The elements that a selector finds, as ids of WebDriver.
  std::vector<std::string> Find(const std::string& selector);
  std::string TextOf(const std::string& element);
  bool Eventually(const std::function<bool()>& condition) const;

  const TemporaryFolder folder_;
  const int port_;
  integration::Process driver_;
  std::string session_;  // path of the session
};

}  // namespace hone::web

#endif  // HONE_TESTS_WEB_BROWSER_H_
