// Drives a fuzz target without libFuzzer: runs the given files or folders, then mutations of them
// for a few seconds. Deterministic for a seed.
//
//   fuzz_smoke_NAME tests/fuzz/corpus/NAME
//   fuzz_smoke_NAME crash-file
//
// HONE_SEED: seed of the mutations (default 1). HONE_FUZZ_SECONDS: duration (default 3; 0: files
// only). An input that crashes or hangs the process is written to a file, whose name is printed.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "tests/fuzz/fuzz_target.h"

// A target's own mutator for libFuzzer; optional.
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                                                size_t most, unsigned seed);

namespace {

constexpr size_t kMaxBytes = 64 << 10;
constexpr unsigned kMaxSecondsPerInput = 20;
constexpr rlim_t kMaxMemory = rlim_t{4} << 30;

const std::string* running = nullptr;
char saved_as[4096];

// Async-signal-safe calls only.
void SaveInput(int signal) {
  const int file = open(saved_as, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0 && running != nullptr &&
      write(file, running->data(), running->size()) == static_cast<ssize_t>(running->size())) {
    const char text[] = "the input is kept in ";
    (void)!write(2, text, sizeof text - 1);
    (void)!write(2, saved_as, std::strlen(saved_as));
    (void)!write(2, "\n", 1);
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void Run(const std::string& input) {
  running = &input;
  alarm(kMaxSecondsPerInput);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  alarm(0);
}

// Collects words, numbers and single characters of the corpus for mutations.
void AddPieces(const std::string& text, std::vector<std::string>& pieces) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) {
      ++end;
    }
    end = std::max(end, at + 1);
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
}

std::string Mutated(const std::vector<std::string>& corpus, const std::vector<std::string>& pieces,
                    hone::Rng& rng) {
  static const std::string kNumbers[] = {"0",
                                         "1",
                                         "-1",
                                         "2",
                                         "7",
                                         "64",
                                         "4096",
                                         "2147483648",
                                         "9223372036854775807",
                                         "99999999999999999999"};
  std::string text = corpus[rng.Below(corpus.size())];
  if (LLVMFuzzerCustomMutator != nullptr && rng.Below(4) != 0) {
    const size_t size = std::min(text.size(), kMaxBytes);
    text.resize(kMaxBytes);
    text.resize(LLVMFuzzerCustomMutator(reinterpret_cast<uint8_t*>(text.data()), size, kMaxBytes,
                                        static_cast<unsigned>(rng())));
    return text;
  }
  const int edits = 1 + static_cast<int>(rng.Below(6));
  for (int e = 0; e < edits; ++e) {
    const size_t at = text.empty() ? 0 : rng.Below(text.size());
    const std::string& piece = pieces[rng.Below(pieces.size())];
    switch (rng.Below(8)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(rng.Below(256));
        break;
      case 1:
        text.erase(at, 1 + rng.Below(8));
        break;
      case 2:
        text.insert(at, piece);
        break;
      case 3: {  // replaces a number in the text
        size_t digit = at;
        while (digit < text.size() && std::isdigit(static_cast<unsigned char>(text[digit])) == 0)
          ++digit;
        size_t end = digit;
        while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
        text.replace(digit, end - digit, kNumbers[rng.Below(std::size(kNumbers))]);
        break;
      }
      case 4: {  // repeats or moves a line
        const size_t begin = text.rfind('\n', at) + 1,
                     end = std::min(text.find('\n', at), text.size());
        const std::string line =
            text.substr(std::min(begin, end), end - std::min(begin, end)) + "\n";
        if (rng.Below(2) == 0) text.erase(std::min(begin, end), line.size());
        const size_t to = text.empty() ? 0 : text.rfind('\n', rng.Below(text.size())) + 1;
        text.insert(to, line);
        break;
      }
      case 5:  // appends the end of another input
        if (const std::string& other = corpus[rng.Below(corpus.size())]; !other.empty()) {
          text = text.substr(0, at) + other.substr(rng.Below(other.size()));
        }
        break;
      case 6:
        if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << rng.Below(8)));
        break;
      default:
        if (rng.Below(8) == 0) text.resize(at);
    }
    if (text.size() > kMaxBytes) text.resize(kMaxBytes);
  }
  return text;
}

double FromEnvironment(const char* name, double fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::atof(value) : fallback;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = std::filesystem::path(argv[0]).filename();
  std::snprintf(saved_as, sizeof saved_as, "%s/crash-%s-%d",
                std::filesystem::temp_directory_path().c_str(), name.c_str(),
                static_cast<int>(getpid()));
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM})
    std::signal(signal, SaveInput);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit memory{kMaxMemory, kMaxMemory};
  setrlimit(RLIMIT_AS, &memory);
#endif
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&argc, &argv);
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> corpus, pieces;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    Run(corpus.back());
    AddPieces(corpus.back(), pieces);
  }
  if (corpus.empty() || pieces.empty()) {
    std::fprintf(stderr, "usage: %s CORPUS…\n", argv[0]);
    return 2;
  }
  const auto seed = static_cast<uint64_t>(FromEnvironment("HONE_SEED", 1));
  const std::chrono::duration<double> limit(FromEnvironment("HONE_FUZZ_SECONDS", 3));
  const auto begin = std::chrono::steady_clock::now();
  uint64_t count = 0;
  while (std::chrono::steady_clock::now() - begin < limit) {
    hone::Rng rng(seed, count++);
    Run(Mutated(corpus, pieces, rng));
  }
  std::printf("%s: %zu files and %llu mutations of them (seed %llu)\n", name.c_str(), corpus.size(),
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(seed));
  return 0;
}
