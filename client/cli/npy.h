#ifndef HONE_CLIENT_CLI_NPY_H_
#define HONE_CLIENT_CLI_NPY_H_

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
  absl::string_view data;      // the elements, contiguous; a view into the parsed bytes
};

// Parses the bytes of a file, which may be arbitrary. InvalidArgument: the file is not a NumPy
// file, has another version, is big-endian or in Fortran order, has elements that are not plain
// numbers (objects, structures, text), is truncated, or has trailing bytes. The message gives the
// reason and, if there is one, a remedy.
absl::StatusOr<NpyArray> ParseNpy(absl::string_view bytes);

// Checks that an array has the type and shape of a tensor. NumPy has no bf16, f8e4m3 and f8e5m2;
// they are stored as their bits, as "u2" or "V2" and as "u1" or "V1". An element of i4 or u4 is a
// byte, "i1", "u1" or "V1". InvalidArgument: they differ; the message names both types and shapes.
absl::Status CheckNpy(const NpyArray& array, ir::DType dtype, const ir::Shape& shape);

// Checks that every element of an integer array is at least 0 and less than `bound`.
// InvalidArgument: one is not; the message names it. REQUIRES: the array has the type.
absl::Status CheckBelow(const NpyArray& array, ir::DType dtype, int64_t bound);

// Packs an array of i4 or u4, which NumPy stores as one byte per element, for a kernel.
// InvalidArgument: an element is not a value of the type; the message names it. REQUIRES:
// CheckNpy() accepts the array.
absl::StatusOr<std::string> PackNpy(const NpyArray& array, ir::DType dtype);

// The header of a file of version 1, padded to a multiple of 64 bytes. The elements follow it. bf16
// is written as "u2", f8e4m3 and f8e5m2 as "u1".
std::string NpyHeader(ir::DType dtype, const ir::Shape& shape);

}  // namespace hone::client

#endif  // HONE_CLIENT_CLI_NPY_H_
