#include "server/lab/recorded_set.h"

#include <zstd.h>

#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "server/cost_model/byte_io.h"

namespace hone::lab {
namespace {

using cost_model::ByteReader;
using cost_model::ByteWriter;

constexpr absl::string_view kTitle = "hone recorded set ";
constexpr int kVersion = 1;
constexpr uint64_t kMaxBytes = 64 << 20;  // limit of the content, far above any set
constexpr int kLevel = 19;

absl::Status Bad(absl::string_view what) { return absl::InvalidArgumentError(what); }

std::string Content(const RecordedSet& set) {
  ByteWriter writer;
  writer.AddString(set.name);
  writer.AddString(set.machine);
  writer.AddString(set.target);
  writer.AddU64(static_cast<uint64_t>(set.recorded_unix_ms));
  writer.AddU32(static_cast<uint32_t>(set.spaces.size()));
  for (const std::string& space : set.spaces) writer.AddString(space);
  writer.AddU32(static_cast<uint32_t>(set.measurements.size()));
  for (const Measurement& measurement : set.measurements) {
    writer.AddU32(static_cast<uint32_t>(measurement.outcome));
    writer.AddDouble(measurement.latency_ns);
    writer.AddDouble(measurement.dispersion);
    writer.AddDouble(measurement.build_ms);
    writer.AddDouble(measurement.run_ms);
    writer.AddU32(static_cast<uint32_t>(measurement.rounds));
  }
  writer.AddU32(static_cast<uint32_t>(set.candidates.size()));
  for (const RecordedCandidate& candidate : set.candidates) {
    writer.AddU32(static_cast<uint32_t>(candidate.space));
    writer.AddU32(static_cast<uint32_t>(candidate.measurement));
    writer.AddU32(static_cast<uint32_t>(candidate.decisions.size()));
    for (const int64_t decision : candidate.decisions) {
      writer.AddU64(static_cast<uint64_t>(decision));
    }
  }
  return std::move(writer).Finish();
}

absl::StatusOr<std::string> ReadString(ByteReader& reader) {
  HONE_ASSIGN_OR_RETURN(const absl::string_view text, reader.String());
  return std::string(text);
}

// Reads a count of elements of at least `bytes` each, so that a wrong count does not allocate
// memory.
absl::StatusOr<uint32_t> ReadCount(ByteReader& reader, size_t bytes) {
  HONE_ASSIGN_OR_RETURN(const uint32_t count, reader.U32());
  if (count > reader.remaining() / bytes) {
    return Bad(absl::StrCat("truncated: ", count, " elements in ", reader.remaining(), " bytes"));
  }
  return count;
}

absl::StatusOr<Measurement> ReadMeasurement(ByteReader& reader) {
  Measurement measurement;
  HONE_ASSIGN_OR_RETURN(const uint32_t outcome, reader.U32());
  bool known = false;
  for (const record::Outcome each : record::AllOutcomes()) {
    known = known || static_cast<uint32_t>(each) == outcome;
  }
  if (!known) return Bad(absl::StrCat("unknown outcome ", outcome));
  measurement.outcome = static_cast<record::Outcome>(outcome);
  HONE_ASSIGN_OR_RETURN(measurement.latency_ns, reader.Double());
  HONE_ASSIGN_OR_RETURN(measurement.dispersion, reader.Double());
  HONE_ASSIGN_OR_RETURN(measurement.build_ms, reader.Double());
  HONE_ASSIGN_OR_RETURN(measurement.run_ms, reader.Double());
  HONE_ASSIGN_OR_RETURN(const uint32_t rounds, reader.U32());
  measurement.rounds = static_cast<int>(rounds);
  return measurement;
}

absl::StatusOr<RecordedCandidate> ReadCandidate(ByteReader& reader) {
  RecordedCandidate candidate;
  HONE_ASSIGN_OR_RETURN(const uint32_t space, reader.U32());
  HONE_ASSIGN_OR_RETURN(const uint32_t measurement, reader.U32());
  HONE_ASSIGN_OR_RETURN(const uint32_t count, ReadCount(reader, 8));
  candidate.space = static_cast<int>(space);
  candidate.measurement = static_cast<int>(measurement);
  for (uint32_t i = 0; i < count; ++i) {
    HONE_ASSIGN_OR_RETURN(const uint64_t decision, reader.U64());
    candidate.decisions.push_back(static_cast<int64_t>(decision));
  }
  return candidate;
}

absl::StatusOr<RecordedSet> ReadContent(absl::string_view content) {
  ByteReader reader(content);
  RecordedSet set;
  HONE_ASSIGN_OR_RETURN(set.name, ReadString(reader));
  HONE_ASSIGN_OR_RETURN(set.machine, ReadString(reader));
  HONE_ASSIGN_OR_RETURN(set.target, ReadString(reader));
  HONE_ASSIGN_OR_RETURN(const uint64_t when, reader.U64());
  set.recorded_unix_ms = static_cast<int64_t>(when);
  HONE_ASSIGN_OR_RETURN(const uint32_t spaces, ReadCount(reader, 8));
  for (uint32_t i = 0; i < spaces; ++i) {
    HONE_ASSIGN_OR_RETURN(std::string space, ReadString(reader));
    set.spaces.push_back(std::move(space));
  }
  HONE_ASSIGN_OR_RETURN(const uint32_t measurements, ReadCount(reader, 40));
  for (uint32_t i = 0; i < measurements; ++i) {
    HONE_ASSIGN_OR_RETURN(const Measurement measurement, ReadMeasurement(reader));
    set.measurements.push_back(measurement);
  }
  HONE_ASSIGN_OR_RETURN(const uint32_t candidates, ReadCount(reader, 12));
  for (uint32_t i = 0; i < candidates; ++i) {
    HONE_ASSIGN_OR_RETURN(RecordedCandidate candidate, ReadCandidate(reader));
    set.candidates.push_back(std::move(candidate));
  }
  if (reader.remaining() != 0) {
    return Bad(absl::StrCat(reader.remaining(), " extra bytes at the end"));
  }
  HONE_RETURN_IF_ERROR(CheckRecordedSet(set));
  return set;
}

// Removes and returns the bytes up to the next line feed.
absl::StatusOr<absl::string_view> TakeLine(absl::string_view& bytes) {
  const size_t end = bytes.substr(0, 256).find('\n');
  if (end == absl::string_view::npos) return Bad("truncated in its first lines");
  const absl::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  return line;
}

}  // namespace

double BestLatencyNs(const RecordedSet& set) {
  double best = INFINITY;
  for (const Measurement& measurement : set.measurements) {
    if (measurement.outcome == record::Outcome::kOk) best = std::min(best, measurement.latency_ns);
  }
  return best;
}

RecordedSet WithoutLayoutChanges(RecordedSet set) {
  std::vector<std::string> kept;
  std::vector<int> number;  // of each space among the kept ones; -1: removed
  for (std::string& space : set.spaces) {
    const bool stays = !absl::StrContains(space, "transform_layout");
    number.push_back(stays ? static_cast<int>(kept.size()) : -1);
    if (stays) kept.push_back(space);
  }
  if (kept.empty()) return set;
  set.spaces = std::move(kept);
  std::erase_if(set.candidates,
                [&](const RecordedCandidate& candidate) { return number[candidate.space] < 0; });
  for (RecordedCandidate& candidate : set.candidates) candidate.space = number[candidate.space];
  return set;
}

absl::Status CheckRecordedSet(const RecordedSet& set) {
  if (set.spaces.empty()) return Bad("the set has no design space");
  bool any = false;
  for (size_t i = 0; i < set.measurements.size(); ++i) {
    const Measurement& measurement = set.measurements[i];
    for (const double value : {measurement.latency_ns, measurement.dispersion, measurement.build_ms,
                               measurement.run_ms}) {
      if (!std::isfinite(value) || value < 0) {
        return Bad(absl::StrCat("measurement ", i, " has the number ", value));
      }
    }
    const bool ok = measurement.outcome == record::Outcome::kOk;
    if (ok != (measurement.latency_ns > 0)) {
      return Bad(absl::StrCat("measurement ", i, ": ", record::OutcomeName(measurement.outcome),
                              " with a latency of ", measurement.latency_ns));
    }
    any = any || ok;
  }
  if (!any) return Bad("no candidate of the set ran");
  std::set<std::pair<int, std::vector<int64_t>>> seen;
  for (const RecordedCandidate& candidate : set.candidates) {
    if (candidate.space < 0 || candidate.space >= static_cast<int>(set.spaces.size()) ||
        candidate.measurement < 0 ||
        candidate.measurement >= static_cast<int>(set.measurements.size())) {
      return Bad(absl::StrCat("a candidate names design space ", candidate.space,
                              " and measurement ", candidate.measurement, " of ", set.spaces.size(),
                              " and ", set.measurements.size()));
    }
    if (!seen.emplace(candidate.space, candidate.decisions).second) {
      return Bad("a decision vector is recorded twice");
    }
  }
  return absl::OkStatus();
}

std::string EncodeRecordedSet(const RecordedSet& set) {
  const std::string content = Content(set);
  std::string packed(ZSTD_compressBound(content.size()), '\0');
  packed.resize(
      ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), kLevel));
  ByteWriter size;
  size.AddU64(content.size());
  return absl::StrCat(kTitle, kVersion, "\n", DigestOf(content).ToHex(), "\n",
                      std::move(size).Finish(), packed);
}

absl::StatusOr<RecordedSet> DecodeRecordedSet(absl::string_view bytes) {
  HONE_ASSIGN_OR_RETURN(absl::string_view title, TakeLine(bytes));
  int version = 0;
  if (!absl::ConsumePrefix(&title, kTitle) || !absl::SimpleAtoi(title, &version)) {
    return Bad("not a recorded set: the first line is not 'hone recorded set VERSION'");
  }
  if (version != kVersion) {
    return Bad(absl::StrCat("a recorded set of version ", version, "; this program reads version ",
                            kVersion, ": use a newer hone-lab, or record it again"));
  }
  HONE_ASSIGN_OR_RETURN(const absl::string_view hex, TakeLine(bytes));
  HONE_ASSIGN_OR_RETURN(const Digest digest, Digest::FromHex(hex));
  ByteReader head(bytes.substr(0, 8));
  HONE_ASSIGN_OR_RETURN(const uint64_t size, head.U64());
  bytes.remove_prefix(8);
  if (size > kMaxBytes) return Bad(absl::StrCat("damaged: a content of ", size, " bytes"));
  std::string content(size, '\0');
  const size_t unpacked =
      ZSTD_decompress(content.data(), content.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(unpacked)) {
    return Bad(absl::StrCat("truncated or damaged: ", ZSTD_getErrorName(unpacked)));
  }
  if (unpacked != size || DigestOf(content) != digest) {
    return Bad("damaged: its content does not have the digest that it names");
  }
  return ReadContent(content);
}

}  // namespace hone::lab
