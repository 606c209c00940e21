#ifndef HONE_COMMON_IR_ELEMENT_BYTES_H_
#define HONE_COMMON_IR_ELEMENT_BYTES_H_

#include <cstdint>

#include "common/ir/dtype.h"
#include "common/ir/scalar.h"

namespace hone::ir {

// Access to elements of a tensor in memory, by dtype. The data need not be aligned. Integers and
// bool are whole numbers. Written values are cast to the dtype (see CastTo). Elements of packed
// types share bytes, which only one thread may write at a time.
Scalar ReadElement(DType dtype, const void* data, int64_t index);
void WriteElement(DType dtype, void* data, int64_t index, Scalar value);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ELEMENT_BYTES_H_
