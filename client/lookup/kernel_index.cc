#include "client/lookup/kernel_index.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

namespace hone::lookup {
namespace {

constexpr char kVersion[] = "hone kernels 1";
constexpr char kFolder[] = "/lookup/";
constexpr size_t kDigestDigits = 32, kChecksumDigits = 16;

using Words = std::vector<std::string>;

Words Split(const std::string& text) {
  constexpr char kBlanks[] = " \t\r\n";
  Words words;
  for (size_t begin = text.find_first_not_of(kBlanks); begin != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::string Join(const Words& words, size_t first = 0) {
  std::string text;
  for (size_t i = first; i < words.size(); ++i) text += (i == first ? "" : " ") + words[i];
  return text;
}

// "key=value". Returns false if the word has another form.
bool SplitPair(const std::string& word, std::string& key, std::string& value) {
  const size_t at = word.find('=');
  if (at == 0 || at == std::string::npos || at + 1 == word.size()) return false;
  key = word.substr(0, at);
  value = word.substr(at + 1);
  return true;
}

// Independent of the locale, which may have a decimal comma.
template <typename T>
bool Number(const std::string& word, T& value) {
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  return error == std::errc() && stop == end && value >= 0;
}

std::string Text(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

bool IsHex(const std::string& word, size_t digits) {
  return word.size() == digits && word.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Removes a sign and leading zeros from a natural number. Other values stay as they are.
std::string Plain(const std::string& value) {
  const size_t digits = value[0] == '+' || value[0] == '-' ? 1 : 0;
  if (digits == value.size() || value.find_first_not_of("0123456789", digits) != std::string::npos)
    return value;
  const std::string number =
      value.substr(std::min(value.find_first_not_of('0', digits), value.size() - 1));
  return value[0] == '-' && number != "0" ? value : number;
}

using Values = std::map<std::string, std::string>;  // by key

// Gives a key its default if it has no value.
void AddDefault(const DefaultKey& key, Values& values) {
  if (key.value.empty() || values.contains(key.name)) return;
  if (key.value[0] != '@') {
    values[key.name] = key.value;
  } else if (const auto other = values.find(key.value.substr(1)); other != values.end()) {
    values[key.name] = other->second;
  }
}

bool ReadOperator(const Words& words, Index& index) {
  Defaults& defaults = index.defaults[words[1]];
  for (size_t i = 2; i < words.size(); ++i) {
    DefaultKey& key = defaults.emplace_back();
    key.only_default = words[i][0] == '-';
    const std::string word = words[i].substr(key.only_default ? 1 : 0);
    if (SplitPair(word, key.name, key.value)) continue;
    if (!key.only_default || word.empty() || word.find('=') != std::string::npos) return false;
    key.name = word;
  }
  return true;
}

bool ReadKernel(const Words& words, Index& index) {
  index.kernels.emplace_back().checksum = words[1];
  return IsHex(words[1], kChecksumDigits);
}

bool ReadName(const Words& words, Index& index) {
  index.kernels.back().names.push_back(Join(words, 1));
  return true;
}

bool ReadWorkload(const Words& words, Index& index) {
  index.kernels.back().workload = words[1];
  return IsDigest(words[1]);
}

bool ReadTarget(const Words& words, Index& index) {
  Kernel& kernel = index.kernels.back();
  kernel.target = words[1];
  kernel.arch = words[2];
  kernel.features.assign(words.begin() + 3, words.end());
  return true;
}

bool ReadMeasured(const Words& words, Index& index) {
  Kernel& kernel = index.kernels.back();
  return Number(words[1], kernel.tolerance) && Number(words[2], kernel.latency_ns) &&
         Number(words[3], kernel.gflops);
}

constexpr std::pair<const char*, Role> kRoles[] = {
    {"input", Role::kInput}, {"constant", Role::kConstant}, {"output", Role::kOutput}};

bool ReadBuffer(const Words& words, Index& index) {
  Buffer& buffer = index.kernels.back().buffers.emplace_back();
  for (const auto& [word, role] : kRoles) {
    if (words[0] == word) buffer.role = role;
  }
  buffer.name = words[1];
  buffer.dtype = words[2];
  for (size_t i = 4; i < words.size(); ++i) {
    if (!Number(words[i], buffer.shape.emplace_back())) return false;
  }
  return Number(words[3], buffer.bytes);
}

// A kind of line. All but the first two describe the kernel above them.
struct Line {
  const char* keyword;
  size_t words;  // the minimum number
  bool of_kernel;
  bool (*read)(const Words& words, Index& index);
};
constexpr Line kLines[] = {
    {"operator", 2, false, ReadOperator}, {"kernel", 2, false, ReadKernel},
    {"name", 2, true, ReadName},          {"workload", 2, true, ReadWorkload},
    {"target", 3, true, ReadTarget},      {"measured", 4, true, ReadMeasured},
    {"input", 4, true, ReadBuffer},       {"constant", 4, true, ReadBuffer},
    {"output", 4, true, ReadBuffer},
};

bool ReadLine(const std::string& text, Index& index) {
  const Words words = Split(text);
  if (words.empty()) return false;
  for (const Line& line : kLines) {
    if (words[0] != line.keyword) continue;
    if (words.size() < line.words || (line.of_kernel && index.kernels.empty())) return false;
    return line.read(words, index);
  }
  return false;
}

}  // namespace

std::string IndexPath(const std::string& folder) { return folder + kFolder + "index"; }

std::string SharedObjectPath(const std::string& folder, const std::string& kernel) {
  return folder + kFolder + kernel + ".so";
}

std::string Print(const Index& index) {
  std::string text = std::string(kVersion) + "\n";
  for (const auto& [name, defaults] : index.defaults) {
    text += "operator " + name;
    for (const DefaultKey& key : defaults) {
      text += (key.only_default ? " -" : " ") + key.name;
      if (!key.value.empty()) text += "=" + key.value;
    }
    text += "\n";
  }
  for (const Kernel& kernel : index.kernels) {
    text += "kernel " + kernel.checksum + "\n";
    for (const std::string& name : kernel.names) text += "name " + name + "\n";
    text += "workload " + kernel.workload + "\n";
    text += "target " + kernel.target + " " + kernel.arch;
    for (const std::string& feature : kernel.features) text += " " + feature;
    text += "\nmeasured " + Text(kernel.tolerance) + " " + Text(kernel.latency_ns) + " " +
            Text(kernel.gflops) + "\n";
    for (const Buffer& buffer : kernel.buffers) {
      text += std::string(kRoles[static_cast<int>(buffer.role)].first) + " " + buffer.name + " " +
              buffer.dtype + " " + std::to_string(buffer.bytes);
      for (const int64_t extent : buffer.shape) text += " " + std::to_string(extent);
      text += "\n";
    }
  }
  return text + "end " + Checksum(text) + "\n";
}

bool Parse(const std::string& text, Index& index, std::string& error) {
  const std::string first = text.substr(0, text.find('\n'));
  if (first != kVersion) {
    const bool other = first.starts_with("hone kernels ");
    error = other ? "its version (" + first + ") is not the one that this library reads (" +
                        kVersion + ")"
                  : "it is not an index of kernels";
    return false;
  }
  // "end CHECKSUM\n".
  const size_t last = 4 + kChecksumDigits + 1;
  const std::string content = text.substr(0, text.size() - std::min(last, text.size()));
  if (text != content + "end " + Checksum(content) + "\n") {
    error = "it is truncated or damaged";
    return false;
  }
  int number = 1;
  for (size_t begin = first.size() + 1; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    ++number;
    if (!ReadLine(content.substr(begin, end - begin), index)) {
      error = "line " + std::to_string(number) + " is malformed";
      return false;
    }
    begin = end + 1;
  }
  for (const Kernel& kernel : index.kernels) {
    if (!kernel.workload.empty() && !kernel.target.empty() && !kernel.buffers.empty()) continue;
    error = "kernel " + kernel.checksum + " is incomplete";
    return false;
  }
  return true;
}

std::string Canonical(const std::string& text, const std::map<std::string, Defaults>& defaults) {
  const Words words = Split(text);
  if (words.empty()) return "";
  Values values;
  for (size_t i = 1; i < words.size(); ++i) {
    std::string key, value;
    if (!SplitPair(words[i], key, value) || !values.emplace(key, Plain(value)).second) return "";
  }
  const auto known = defaults.find(words[0]);
  if (!values.empty() && known != defaults.end()) {
    for (const DefaultKey& key : known->second) AddDefault(key, values);
    for (const DefaultKey& key : known->second) {
      if (key.only_default) values.erase(key.name);
    }
  }
  std::string canonical = words[0];
  for (const auto& [key, value] : values) canonical += " " + key + "=" + value;
  return canonical;
}

bool RemoveKey(const std::string& canonical, const std::string& key, WordsWithoutKey& rest) {
  Words words = Split(canonical);
  for (size_t i = 1; i < words.size(); ++i) {
    std::string name, value;
    if (!SplitPair(words[i], name, value) || name != key) continue;
    if (!Number(value, rest.value)) return false;
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    rest.words = Join(words);
    return true;
  }
  return false;
}

bool IsDigest(const std::string& word) { return IsHex(word, kDigestDigits); }

std::string Checksum(const std::string& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  char text[kChecksumDigits + 1];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

bool ReadFile(const std::string& path, std::string& content) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  // Not a stream, whose iterators throw if a read fails.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  if (file == nullptr) return false;
  content.clear();
  char part[1 << 14];
  while (const size_t size = std::fread(part, 1, sizeof part, file.get())) {
    content.append(part, size);
  }
  return std::ferror(file.get()) == 0;
}

}  // namespace hone::lookup
