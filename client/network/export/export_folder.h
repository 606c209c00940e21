#ifndef HONE_CLIENT_NETWORK_EXPORT_EXPORT_FOLDER_H_
#define HONE_CLIENT_NETWORK_EXPORT_EXPORT_FOLDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hone::client {

// What the files of an export are. They are written to NAME.export.json beside the files, so that a
// later export of the same name can tell whether it would replace something else.
struct ExportFacts {
  std::string name;               // of the files
  std::string kind = "operator";  // or "network"
  std::string title;              // for messages: "matmul: A f32[4, 4], …", "resnet50.onnx"
  std::string digest;             // of the workload, or of the network's files
  std::string shapes;  // of a network's inputs and outputs: "data: f32[1, 3, 224, 224] -> …"
  std::string target;  // key
  double tolerance = 0;
  int64_t kernels = 1;   // in the export
  int64_t measured = 1;  // of them; the others are drafts
};

struct ExportedFile {
  std::string path;
  int64_t bytes = 0;
};

// Writes the files of one export or of several into a folder: all of them or none. Files are
// written into a folder inside it first, and moved at the end. Several processes may export into a
// folder at the same time.
class ExportFolder {
 public:
  // Without `overwrite`, an export replaces only files of an earlier export of the same name of the
  // same thing: of equal kind, digest, shapes, target and tolerance, and with at most as many
  // measured kernels, unless all kernels are measured now.
  // `shared`: files that several exports may have in common. Each of them replaces the file.
  ExportFolder(std::string folder, bool overwrite, std::vector<std::string> shared = {})
      : folder_(std::move(folder)), overwrite_(overwrite), shared_(std::move(shared)) {}
  // Removes what was written but not committed.
  ~ExportFolder();
  ExportFolder(const ExportFolder&) = delete;
  ExportFolder& operator=(const ExportFolder&) = delete;

  // Asks whether an export of these files, which are named relative to the folder, may be
  // committed. Writes nothing. InvalidArgument: it would replace something else; the message says
  // what.
  absl::Status Check(const ExportFacts& facts, absl::Span<const std::string> files) const;

  // The folder for files that are not committed yet. Creates it and the folder itself. Errors as
  // for ErrnoStatus.
  absl::StatusOr<std::string> Scratch();
  // Writes a file there. Errors as for WriteFileAtomically.
  absl::Status Write(const std::string& file, absl::string_view content);
  // Adds an export whose files are there. InvalidArgument: another added export has one of the
  // files, which is not shared.
  absl::Status Add(const ExportFacts& facts, std::vector<std::string> files);

  // Moves the files of all added exports to their places, and removes files of earlier exports that
  // they replace and no other export has. Returns the files of each export. On failure, the folder
  // is as it was before. InvalidArgument: as for Check, because the folder was changed since. Other
  // errors: a file cannot be written.
  absl::StatusOr<std::vector<std::vector<ExportedFile>>> Commit();

 private:
  struct Added {
    ExportFacts facts;
    std::vector<std::string> files;
  };
  class Moves;

  std::string PathOf(absl::string_view file) const;

  const std::string folder_;
  const bool overwrite_;
  const std::vector<std::string> shared_;
  std::string scratch_;
  std::vector<std::string> made_;  // folders that did not exist, outermost first
  std::vector<Added> added_;
};

}  // namespace hone::client

#endif  // HONE_CLIENT_NETWORK_EXPORT_EXPORT_FOLDER_H_
