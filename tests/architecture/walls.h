#ifndef HONE_TESTS_ARCHITECTURE_WALLS_H_
#define HONE_TESTS_ARCHITECTURE_WALLS_H_

#include <string>
#include <vector>

namespace hone::architecture {

// A file of the source tree: its path from the source root, and its content.
struct SourceFile {
  std::string path;
  std::string content;
};

// Returns a sorted list with one readable line for each violation of the architecture:
//
//   - a folder includes another one that the folder table does not allow, directly or through the
//     folders that it may include;
//   - a file includes a generated protocol header or a confined package, directly or through other
//     headers, outside the folders that may do so;
//   - a folder is missing in the table;
//   - a file has more than kMaxLines lines, or kMaxTestLines in tests;
//   - a folder outside tests has more than kMaxFiles files.
std::vector<std::string> FindCrossings(const std::vector<SourceFile>& files);

inline constexpr int kMaxLines = 600, kMaxTestLines = 800, kMaxFiles = 40;

}  // namespace hone::architecture

#endif  // HONE_TESTS_ARCHITECTURE_WALLS_H_
