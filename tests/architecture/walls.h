#ifndef HONE_TESTS_ARCHITECTURE_WALLS_H_
#define HONE_TESTS_ARCHITECTURE_WALLS_H_

#include <string>
#include <vector>

namespace hone::architecture {

// One file of the tree: its path from the source root, and its content.
struct SourceFile {
  std::string path;
  std::string content;
};

// Every place where the tree breaks the folder table of the architecture, one readable line each,
// sorted:
//  - a folder includes one that the table does not allow it, directly or by what the allowed ones
//  may include;
//  - a file sees a generated protocol header or a heavy package outside the folders that they are
//  confined to, also through
//    another header of the tree;
//  - a folder of the programs that the table does not know;
//  - a file of more than kMaxLines lines.
std::vector<std::string> FindCrossings(const std::vector<SourceFile>& files);

inline constexpr int kMaxLines = 800;

}  // namespace hone::architecture

#endif  // HONE_TESTS_ARCHITECTURE_WALLS_H_
