#ifndef HONE_CLIENT_NETWORK_EXPORT_C_TEXT_H_
#define HONE_CLIENT_NETWORK_EXPORT_C_TEXT_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "common/ir/workload.h"

// Parts of the C headers and programs that are written with exported kernels.
namespace hone::client {

// Makes a C identifier from any text: other characters become '_', and a leading digit is prefixed
// with '_'.
std::string CIdentifier(absl::string_view text);

// The prefix of the macros of an export with this name, a C identifier: "RESNET" for "resnet".
// Different names have different prefixes: a name with upper-case letters keeps its letters, but
// one without lower-case letters, such as "A", becomes "a".
std::string MacroPrefix(absl::string_view name);

// The lines of a text within a block comment, " *   …" each. No "*/" remains in them.
std::string CommentLines(absl::string_view text);

// A line of a comment that says how fast a kernel is on the target of the text; empty if it was not
// measured.
std::string MeasuredLine(double latency_ns, double gflops);

// The inputs and outputs of a workload in the order of a kernel's buffers.
std::vector<ir::BufferId> BuffersOf(const ir::Workload& workload);

// The prefix of each buffer's macros: "MATMUL_A". The prefixes are distinct.
std::vector<std::string> BufferPrefixes(const std::string& prefix, const ir::Workload& workload);

// Definitions of the index, type, rank, shape, strides, number of elements and bytes of every
// buffer: MATMUL_A_BYTES and so on. `constant` returns what a comment says of a constant input,
// which is given by its position among the inputs.
std::string BufferMacros(const std::string& prefix, const ir::Workload& workload,
                         absl::FunctionRef<std::string(size_t)> constant);

}  // namespace hone::client

#endif  // HONE_CLIENT_NETWORK_EXPORT_C_TEXT_H_
