#ifndef HONE_CLIENT_LIB_NPY_H_
#define HONE_CLIENT_LIB_NPY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/workload.h"

namespace hone::client {

// An array of a NumPy file (.npy, versions 1 and 2), little-endian and in C order.
struct NpyArray {
  std::string type;            // as NumPy writes it, without the byte order: "f4", "b1", "V2"
  std::vector<int64_t> shape;  // empty: a scalar
  absl::string_view data;      // within the bytes that were read: elements without gaps
};

// Reads the bytes of a file. InvalidArgument: not a NumPy file, of another version, big-endian, in
// Fortran order, of a type that is not a plain number (objects, structures, text), cut off or with
// bytes behind its data; the message says which, and what to do. Any bytes at all may be given.
absl::StatusOr<NpyArray> ParseNpy(absl::string_view bytes);

// Whether an array holds what a tensor of this type does. NumPy has no bf16: it is stored as its 16
// bits, as "u2" or "V2". InvalidArgument: names both types and shapes.
absl::Status CheckNpy(const NpyArray& array, ir::DType dtype, const ir::Shape& shape);

// What a file of version 1 begins with, a multiple of 64 bytes; the elements follow. bf16 is
// written as "u2".
std::string NpyHeader(ir::DType dtype, const ir::Shape& shape);

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_NPY_H_
