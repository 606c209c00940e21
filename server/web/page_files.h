#ifndef HONE_SERVER_WEB_PAGE_FILES_H_
#define HONE_SERVER_WEB_PAGE_FILES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hone::web {

// A file of the folder page, which the build puts into the program.
struct PageFile {
  absl::string_view name;  // "app.js"
  absl::string_view content;
};
absl::Span<const PageFile> PageFiles();

}  // namespace hone::web

#endif  // HONE_SERVER_WEB_PAGE_FILES_H_
