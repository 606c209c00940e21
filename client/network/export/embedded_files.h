#ifndef HONE_CLIENT_NETWORK_EXPORT_EMBEDDED_FILES_H_
#define HONE_CLIENT_NETWORK_EXPORT_EMBEDDED_FILES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hone::network {

// A file that this program contains, so that an export needs no compiler and no other file.
struct EmbeddedFile {
  absl::string_view name;
  absl::string_view content;
};

// The header and the object files of the runtime, the Python loader, and the sources of the
// threads. embed.cmake writes them.
absl::Span<const EmbeddedFile> EmbeddedFiles();

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_EXPORT_EMBEDDED_FILES_H_
