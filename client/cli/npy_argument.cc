#include "client/cli/npy_argument.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/exit_code.h"
#include "client/cli/npy.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/record/given_inputs.h"

namespace hone::cli {
namespace {

// Whether WriteFileAtomically can replace the file: it writes a temporary file beside it.
absl::Status CheckWritable(const std::string& name) {
  const auto [path, is_special] = FindFileToWrite(name);
  if (is_special) {
    return access(path.c_str(), W_OK) == 0 ? absl::OkStatus()
                                           : ErrnoStatus(errno, absl::StrCat("write ", path));
  }
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": it is a folder"));
  }
  std::string temporary = absl::StrCat(path, ".XXXXXX");
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
  close(fd);
  unlink(temporary.c_str());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadNpyArgument(const std::string& path, absl::string_view name,
                                            ir::DType dtype, const ir::Shape& shape,
                                            int64_t bound) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return absl::InvalidArgumentError(bytes.status().message());
  const absl::StatusOr<client::NpyArray> array = client::ParseNpy(*bytes);
  if (!array.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", array.status().message()));
  }
  absl::Status fits = client::CheckNpy(*array, dtype, shape);
  if (fits.ok() && bound > 0) fits = client::CheckBelow(*array, dtype, bound);
  if (!fits.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ", the ", name, ": ", fits.message()));
  }
  if (ir::IsPacked(dtype)) {
    absl::StatusOr<std::string> packed = client::PackNpy(*array, dtype);
    if (packed.ok()) return packed;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ", the ", name, ": ", packed.status().message()));
  }
  bytes->erase(0, bytes->size() - array->data.size());
  return bytes;
}

void AddGivenInputs(Command& command, std::vector<std::string>& words) {
  command.Add("--in", words,
              "A.npy or NAME=A.npy of an input to measure on, with the values of real data; may be "
              "repeated. Without it, and for other inputs, values are seeded such that every stage "
              "has magnitudes near 1. All of them have at most 64 MiB",
              {OneWordPerUse()});
}

absl::StatusOr<std::string> ReadGivenInputs(const std::vector<std::string>& words,
                                            const ir::Workload& workload) {
  if (words.empty()) return std::string();
  const std::vector<ir::BufferId> inputs = workload.Inputs();
  const auto names = [&] {
    return absl::StrJoin(inputs, ", ", [&](std::string* text, ir::BufferId id) {
      const ir::Tensor& tensor = workload.tensors[id];
      absl::StrAppend(text, tensor.name, ": ", ir::TypeText(tensor.dtype, tensor.shape));
    });
  };
  std::map<int, std::string> given;
  int next = 0;
  for (const std::string& word : words) {
    std::string path = word;
    int number = -1;
    const size_t equals = word.find('=');
    for (size_t i = 0; i < inputs.size() && equals != std::string::npos; ++i) {
      if (workload.tensors[inputs[i]].name != word.substr(0, equals)) continue;
      number = static_cast<int>(i);
      path = word.substr(equals + 1);
    }
    // A file may have '=' in its name.
    std::error_code ignored;
    if (number < 0 && equals != std::string::npos && !std::filesystem::exists(path, ignored)) {
      return absl::InvalidArgumentError(absl::StrCat("--in ", word, ": ", word.substr(0, equals),
                                                     " is not an input; the inputs are ", names()));
    }
    if (number < 0) number = next++;
    if (number >= static_cast<int>(inputs.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("--in ", word, ": more files than inputs; the inputs are ", names()));
    }
    const ir::Tensor& tensor = workload.tensors[inputs[number]];
    if (given.contains(number)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--in ", word, ": input ", tensor.name, " is given twice"));
    }
    HONE_ASSIGN_OR_RETURN(given[number], ReadNpyArgument(path, absl::StrCat("input ", tensor.name),
                                                         tensor.dtype, tensor.shape, tensor.bound));
  }
  return record::EncodeGivenInputs(given);
}

absl::Status CheckNpyResults(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    HONE_RETURN_IF_ERROR(WithExitCode(CheckWritable(path), kExitFailed));
  }
  return absl::OkStatus();
}

absl::Status WriteNpyResult(const std::string& path, ir::DType dtype, const ir::Shape& shape,
                            absl::string_view elements) {
  return WithExitCode(
      WriteFileAtomically(path, absl::StrCat(client::NpyHeader(dtype, shape), elements)),
      kExitFailed);
}

}  // namespace hone::cli
