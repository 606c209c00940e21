// hone records export, hone records import.

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "client/cli/json_output.h"
#include "client/cli/record_selection.h"
#include "client/cli/records.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

constexpr size_t kPiece = 128 << 10;

struct ExportOptions {
  RecordSelection which;
  std::string output;
};

absl::Status ExportRecords(const Globals& globals, const ExportOptions& options) {
  HONE_ASSIGN_OR_RETURN(client::RecordFilter filter, ReadSelection(options.which));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/false));
  HONE_RETURN_IF_ERROR(CompleteSelection(globals, *session, filter));
  const bool to_stdout = options.output.empty();
  const std::string part = absl::StrCat(options.output, ".part");
  std::FILE* const file = to_stdout ? stdout : std::fopen(part.c_str(), "w");
  if (file == nullptr) return ErrnoStatus(errno, absl::StrCat("write ", part));
  int64_t bytes = 0;
  absl::Status status =
      session->connection().ExportRecords(filter, [&](absl::string_view piece) -> absl::Status {
        bytes += static_cast<int64_t>(piece.size());
        if (std::fwrite(piece.data(), 1, piece.size(), file) == piece.size()) {
          return absl::OkStatus();
        }
        return ErrnoStatus(errno, "write the export");
      });
  if (to_stdout) {
    if (std::fflush(stdout) != 0) status.Update(ErrnoStatus(errno, "write the export"));
    return status;
  }
  if (std::fclose(file) != 0) status.Update(ErrnoStatus(errno, absl::StrCat("write ", part)));
  // Only a whole export gets the name.
  if (status.ok() && std::rename(part.c_str(), options.output.c_str()) != 0) {
    status = ErrnoStatus(errno, absl::StrCat("write ", options.output));
  }
  if (!status.ok()) {
    std::remove(part.c_str());
    return status;
  }
  if (globals.json) {
    PrintJson({{"path", options.output}, {"bytes", bytes}});
  } else {
    std::printf("wrote %s\n", options.output.c_str());
  }
  return absl::OkStatus();
}

absl::Status ImportRecords(const Globals& globals, const std::string& path) {
  std::FILE* const file = path == "-" ? stdin : std::fopen(path.c_str(), "r");
  if (file == nullptr) return ErrnoStatus(errno, absl::StrCat("read ", path));
  const auto close = absl::MakeCleanup([&] {
    if (file != stdin) std::fclose(file);
  });
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/false));
  HONE_ASSIGN_OR_RETURN(const client::ImportCounts counts,
                        session->connection().ImportRecords([&]() -> absl::StatusOr<std::string> {
                          std::string piece(kPiece, '\0');
                          piece.resize(std::fread(piece.data(), 1, piece.size(), file));
                          if (std::ferror(file) != 0) {
                            return ErrnoStatus(errno, absl::StrCat("read ", path));
                          }
                          return piece;
                        }));
  if (globals.json) {
    PrintJson({{"added", counts.added}, {"known", counts.known}});
  } else {
    std::printf("%lld records added, %lld were there already\n",
                static_cast<long long>(counts.added), static_cast<long long>(counts.known));
  }
  return absl::OkStatus();
}

}  // namespace

void AddRecordFiles(CLI::App& records, Globals& globals, Action& action) {
  CLI::App* const out = records.add_subcommand(
      "export", "Write records, with all that is known of them, as JSON lines");
  auto options = std::make_shared<ExportOptions>();
  AddSelection(*out, options->which);
  out->add_option("-o,--output", options->output, "File to write; else standard output");
  AddGlobals(*out, globals);
  out->footer(
      "Examples:\n"
      "  hone records export --op conv2d --since 30d -o records.jsonl\n"
      "  hone records export | zstd > records.jsonl.zst");
  out->callback([&globals, &action, options] {
    action = [&globals, options] { return ExportRecords(globals, *options); };
  });

  CLI::App* const in = records.add_subcommand(
      "import", "Add the records of an export; all of them or none, and none twice");
  auto path = std::make_shared<std::string>();
  in->add_option("file", *path, "What hone records export wrote; - for standard input")->required();
  AddGlobals(*in, globals);
  in->footer(
      "Examples:\n"
      "  hone records import records.jsonl\n"
      "  zstdcat records.jsonl.zst | hone records import -");
  in->callback([&globals, &action, path] {
    action = [&globals, path] { return ImportRecords(globals, *path); };
  });
}

}  // namespace hone::cli
