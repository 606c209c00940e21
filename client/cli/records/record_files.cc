// hone records export, hone records import.

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/signals.h"
#include "client/cli/records/record_selection.h"
#include "client/cli/suggested_command.h"
#include "common/base/counted.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

constexpr size_t kPiece = 128 << 10;

struct RecordExport {
  RecordSelection which;
  std::string output;
};

// Refuses a single word with '.' or '/' that does not name a .hone file: the user meant the output.
absl::Status CheckNoFile(const RecordSelection& selection) {
  if (selection.words.size() != 1 || selection.words[0].find_first_of("./") == std::string::npos ||
      absl::EndsWith(selection.words[0], ".hone")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", selection.words[0], "' is not an operator; to write to a file of this name, use: ",
      SuggestedCommand("records export -o " + ShellWord(selection.words[0]))));
}

absl::Status ExportRecords(const Globals& globals, const RecordExport& options) {
  HONE_RETURN_IF_ERROR(CheckNoFile(options.which));
  HONE_ASSIGN_OR_RETURN(v1::ListRecordsRequest filter, ReadSelection(options.which));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_RETURN_IF_ERROR(CompleteSelection(*session, filter));
  const bool to_stdout = options.output.empty();
  const auto not_written = [&] {
    const std::string to = to_stdout ? "standard output" : options.output;
    return WithExitCode(ErrnoStatus(errno, absl::StrCat("write ", to)), kExitFailed);
  };
  const auto [output, is_special] = FindFileToWrite(options.output);
  const std::string part = is_special ? output : absl::StrCat(output, ".part");
  // Before the file exists, because a signal may come at any time.
  std::optional<IncompleteFile> incomplete;
  if (!to_stdout && !is_special) incomplete.emplace(part);
  std::FILE* const file = to_stdout ? stdout : std::fopen(part.c_str(), "w");
  if (file == nullptr) return not_written();
  const std::optional<mode_t> mode = incomplete ? ModeToKeep(output) : std::nullopt;
  if (mode.has_value() && fchmod(fileno(file), *mode) != 0) return not_written();
  int64_t bytes = 0;
  std::string tail;  // the last line, perhaps after others
  absl::Status status =
      session->connection().ExportRecords(filter, [&](absl::string_view piece) -> absl::Status {
        bytes += static_cast<int64_t>(piece.size());
        absl::StrAppend(&tail, piece);
        if (const size_t end = tail.find_last_not_of('\n'); end != std::string::npos) {
          tail.erase(0, tail.rfind('\n', end) + 1);
        }
        if (std::fwrite(piece.data(), 1, piece.size(), file) == piece.size()) {
          return absl::OkStatus();
        }
        return not_written();
      });
  if (to_stdout) {
    if (std::fflush(stdout) != 0) status.Update(not_written());
    return status;
  }
  if (std::fclose(file) != 0) status.Update(not_written());
  HONE_RETURN_IF_ERROR(status);
  // Only a complete export gets the final name.
  if (!is_special && std::rename(part.c_str(), output.c_str()) != 0) return not_written();
  const int64_t records = RecordsOfExport(tail);
  if (globals.json) {
    return PrintJson({{"path", options.output}, {"bytes", bytes}, {"record_count", records}});
  }
  absl::PrintF("wrote %s: %s\n", options.output, Counted(records, "record"));
  return absl::OkStatus();
}

absl::Status ImportRecords(const Globals& globals, const std::string& path) {
  std::FILE* const file = path == "-" ? stdin : std::fopen(path.c_str(), "r");
  if (file == nullptr) return ErrnoStatus(errno, absl::StrCat("read ", path));
  const auto close = absl::MakeCleanup([&] {
    if (file != stdin) std::fclose(file);
  });
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  bool was_read = true;
  const absl::StatusOr<v1::ImportRecordsResponse> counts =
      session->connection().ImportRecords([&]() -> absl::StatusOr<std::string> {
        std::string piece(kPiece, '\0');
        piece.resize(std::fread(piece.data(), 1, piece.size(), file));
        if (std::ferror(file) == 0) return piece;
        was_read = false;
        return ErrnoStatus(errno, absl::StrCat("read ", path));
      });
  // The server knows the line of a mistake, but not the file.
  if (absl::IsInvalidArgument(counts.status()) && was_read && file != stdin) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", counts.status().message()));
  }
  HONE_RETURN_IF_ERROR(counts.status());
  if (globals.json) return PrintJson(FieldsJson(*counts));
  absl::PrintF("%s added, %d already in the store\n", Counted(counts->added(), "record"),
               counts->known());
  return absl::OkStatus();
}

}  // namespace

void AddRecordFiles(Command& records, Globals& globals) {
  Command& out = records.AddCommand("export", "Write complete records as JSON lines");
  auto options = std::make_shared<RecordExport>();
  AddSelection(out, options->which);
  out.Add("-o,--output", options->output, "File to write (default: standard output)");
  Complete(out, globals,
           "Examples:\n"
           "  hone records export --op conv2d --since 30d -o records.jsonl\n"
           "  hone records export | zstd > records.jsonl.zst",
           [&globals, options] { return ExportRecords(globals, *options); });

  Command& in = records.AddCommand(
      "import", "Add the records of an export: all of them or none, without duplicates");
  auto path = std::make_shared<std::string>();
  in.Add("file", *path, "File written by hone records export; - for standard input", {Required()});
  CompleteWithoutTarget(
      in, globals,
      "An export contains no kernels, so nothing is published: hone revalidate builds the "
      "best imported schedules and publishes the winners.\n\n"
      "Examples:\n"
      "  hone records import records.jsonl\n"
      "  zstdcat records.jsonl.zst | hone records import -",
      [&globals, path] { return ImportRecords(globals, *path); });
}

}  // namespace hone::cli
