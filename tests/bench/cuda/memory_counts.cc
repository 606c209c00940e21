#include "tests/bench/cuda/memory_counts.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hone::bench {
namespace {

constexpr int kWideBits = 128;

using Parts = std::vector<absl::string_view>;

void Count(AccessCount& count, bool wide) {
  ++count.all;
  count.wide += wide;
}

bool Has(const Parts& parts, absl::string_view part) {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

// Removes a predicate such as "@!P0".
absl::string_view WithoutPredicate(absl::string_view instruction) {
  if (!absl::ConsumePrefix(&instruction, "@")) return instruction;
  const size_t end = instruction.find(' ');
  if (end == absl::string_view::npos) return "";
  return absl::StripLeadingAsciiWhitespace(instruction.substr(end));
}

// Returns the bits that an instruction of PTX moves: 128 for "ld.global.v4.f32".
int PtxBits(const Parts& parts) {
  int elements = 1, bits = 0;
  for (const absl::string_view part : parts) {
    int number = 0;
    if (part.size() < 2 || !absl::SimpleAtoi(part.substr(1), &number)) continue;
    if (part[0] == 'v') elements = number;
    if (absl::StrContains("bsuf", part.substr(0, 1))) bits = number;
  }
  return elements * bits;
}

}  // namespace

CountsByKernel CountSass(absl::string_view listing) {
  CountsByKernel counts;
  MemoryCounts* kernel = nullptr;
  for (absl::string_view line : absl::StrSplit(listing, '\n')) {
    if (absl::ConsumePrefix(&line, ".text.") && absl::ConsumeSuffix(&line, ":")) {
      kernel = &counts[std::string(line)];
      continue;
    }
    line = absl::StripAsciiWhitespace(line);
    // "/*0170*/  @!P0 LDG.E.128 R16, [R16.64] ;"
    const size_t address = line.find("*/");
    if (kernel == nullptr || !absl::StartsWith(line, "/*") || address == absl::string_view::npos)
      continue;
    line = WithoutPredicate(absl::StripLeadingAsciiWhitespace(line.substr(address + 2)));
    const Parts parts = absl::StrSplit(line.substr(0, line.find(' ')), '.');
    const bool wide = Has(parts, "128") || Has(parts, "256");
    if (parts[0] == "LDG" || parts[0] == "LDGSTS") Count(kernel->global_loads, wide);
    if (parts[0] == "LDS") Count(kernel->shared_loads, wide);
    if (parts[0] == "STG") Count(kernel->global_stores, wide);
  }
  return counts;
}

CountsByKernel CountPtx(absl::string_view ptx) {
  CountsByKernel counts;
  MemoryCounts* kernel = nullptr;
  for (absl::string_view line : absl::StrSplit(ptx, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (const size_t entry = line.find(".entry "); entry != absl::string_view::npos) {
      const absl::string_view rest = line.substr(entry + 7);
      kernel = &counts[std::string(rest.substr(0, rest.find_first_of("( ")))];
      continue;
    }
    if (kernel == nullptr) continue;
    line = WithoutPredicate(line);
    const absl::string_view operation = line.substr(0, line.find_first_of(" \t"));
    const Parts parts = absl::StrSplit(operation, '.');
    const bool wide = PtxBits(parts) >= kWideBits;
    if (parts[0] == "ld" && Has(parts, "global")) Count(kernel->global_loads, wide);
    if (parts[0] == "ld" && Has(parts, "shared")) Count(kernel->shared_loads, wide);
    if (parts[0] == "st" && Has(parts, "global")) Count(kernel->global_stores, wide);
    // The size is an operand: "cp.async.ca.shared.global [%r1], [%rd2], 16;"
    if (absl::StartsWith(operation, "cp.async.") && Has(parts, "global"))
      Count(kernel->global_loads, absl::StrContains(line, ", 16"));
  }
  return counts;
}

}  // namespace hone::bench
