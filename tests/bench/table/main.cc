// Makes the table of benchmark results from the JSON lines that the programs print.

#include <cstdio>
#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/command_line.h"
#include "common/base/file.h"
#include "common/target/host.h"
#include "common/target/target.h"
#include "nlohmann/json.hpp"
#include "tests/bench/table/markdown.h"
#include "tests/bench/table/results.h"

namespace hone::bench {
namespace {

void PrintMachine() {
  const target::Target host = target::DetectHost();
  const nlohmann::ordered_json machine = {
      {"cpu", target::DescribeHost().cpu},
      {"target", host.Key()},
      {"cores", host.cores},
      {"date", absl::FormatTime("%Y-%m-%d", absl::Now(), absl::LocalTimeZone())}};
  std::printf("%s\n", nlohmann::ordered_json({{"machine", machine}}).dump().c_str());
}

int Main(int argc, char** argv) {
  std::string path, notes_path;
  bool machine = false;
  Command app(
      "Prints the table of the results in FILE, JSON lines as compare --lines and "
      "candidate_benchmark print them.",
      "bench_table");
  app.Add("file", path, "Lines of results");
  app.Add("--notes", notes_path, "A text to end with");
  app.AddFlag("--machine", machine, "Print the line that names this machine");
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  if (machine) {
    PrintMachine();
    return 0;
  }
  const absl::StatusOr<std::string> lines = ReadFile(path);
  const absl::StatusOr<std::string> notes =
      notes_path.empty() ? absl::StatusOr<std::string>("") : ReadFile(notes_path);
  for (const auto* text : {&lines, &notes}) {
    if (text->ok()) continue;
    std::fprintf(stderr, "bench_table: %s\n", std::string(text->status().message()).c_str());
    return 2;
  }
  const absl::StatusOr<Results> results = ParseResults(*lines);
  if (!results.ok()) {
    std::fprintf(stderr, "bench_table: %s: %s\n", path.c_str(),
                 std::string(results.status().message()).c_str());
    return 2;
  }
  std::printf("%s", ToMarkdown(*results, *notes).c_str());
  return 0;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) { return hone::bench::Main(argc, argv); }
