#ifndef HONE_SERVER_FEATURE_STATEMENT_COLUMNS_H_
#define HONE_SERVER_FEATURE_STATEMENT_COLUMNS_H_

#include <string>
#include <vector>

namespace hone::feature {

// Where the groups of a row of statement features begin.
inline constexpr int kStatementBuffers = 5;
inline constexpr int kColumnsPerBuffer = 18;
inline constexpr int kIntensitySamples = 10;
inline constexpr int kOperations = 0;                  // 16 counts
inline constexpr int kAnnotations = kOperations + 16;  // 3 kinds × (3 + 8)
inline constexpr int kGpu = kAnnotations + 3 * 11;     // 8
inline constexpr int kBufferColumns = kGpu + 8;
inline constexpr int kIntensity = kBufferColumns + kStatementBuffers * kColumnsPerBuffer;
inline constexpr int kAllocation = kIntensity + kIntensitySamples;  // 4
inline constexpr int kOuter = kAllocation + 4;                      // 3
inline constexpr int kStatementColumns = kOuter + 3;
static_assert(kBufferColumns == 57 && kStatementColumns == 164);

const std::vector<std::string>& StatementColumnNames();

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_STATEMENT_COLUMNS_H_
