#ifndef HONE_CLIENT_CLI_NPY_ARGUMENT_H_
#define HONE_CLIENT_CLI_NPY_ARGUMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/command.h"
#include "common/ir/workload.h"

namespace hone::cli {

// Reads the elements of a tensor from a NumPy file. `name`: "input A", for errors.
// InvalidArgument: the file cannot be read, or does not have the type, the shape and, if `bound` is
// not 0, elements in [0, bound).
absl::StatusOr<std::string> ReadNpyArgument(const std::string& path, absl::string_view name,
                                            ir::DType dtype, const ir::Shape& shape,
                                            int64_t bound = 0);

// Adds --in of a command that measures.
void AddGivenInputs(Command& command, std::vector<std::string>& words);

// Reads the values of --in of a command that measures: FILE or NAME=FILE, where NAME is an input.
// Those without a name are the first inputs, in order. Returns record::EncodeGivenInputs; "" if
// there are no words. InvalidArgument: there are more files than inputs, an input is given twice,
// or as for ReadNpyArgument.
absl::StatusOr<std::string> ReadGivenInputs(const std::vector<std::string>& words,
                                            const ir::Workload& workload);

// Ok if WriteNpyResult can write the files, to be asked before anything is computed. An error names
// the path and has the exit code kExitFailed.
absl::Status CheckNpyResults(const std::vector<std::string>& paths);
// Writes a NumPy file. A failure has the exit code kExitFailed.
absl::Status WriteNpyResult(const std::string& path, ir::DType dtype, const ir::Shape& shape,
                            absl::string_view elements);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NPY_ARGUMENT_H_
