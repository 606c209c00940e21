#include "tests/architecture/walls.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace hone::architecture {
namespace {

// A folder and the folders that it may include, which also brings in what these may include.
struct Room {
  std::string folder;
  std::vector<std::string> may_include;
};

std::vector<std::string> Join(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The folder table of the architecture. A path belongs to the first row that contains it.
std::vector<Room> Rooms() {
  // What a tuner needs: no connection to anything.
  const std::vector<std::string> description = {"common/base",     "common/ir",
                                                "common/operator", "common/schedule",
                                                "common/target",   "common/record"};
  const std::vector<std::string> common = Join(description, {"common/rpc"});
  const std::vector<std::string> tuner = {"server/tuner/space", "server/tuner/feature",
                                          "server/tuner/cost_model", "server/tuner/search"};
  const std::vector<std::string> server_domain =
      Join(Join(common, tuner), {"server/fleet", "server/store"});
  const std::vector<std::string> all_server = Join(server_domain, {"server/job"});
  const std::vector<std::string> network = {"client/network/graph", "client/network/runtime",
                                            "client/network/plan", "client/network/export"};
  return {
      {"proto", {}},
      {"common/base", {}},
      {"common/ir", {"common/base"}},
      {"common/operator", {"common/ir"}},
      {"common/schedule", {"common/ir", "common/target"}},
      {"common/target", {"common/base"}},
      {"common/record", {"common/ir", "common/schedule", "common/target", "proto"}},
      {"common/rpc", {"common/base"}},
      {"server/tuner/space", description},
      {"server/tuner/feature", description},
      {"server/tuner/cost_model", description},
      {"server/tuner/search", Join(description, {"server/tuner/space", "server/tuner/feature",
                                                 "server/tuner/cost_model"})},
      {"server/fleet", common},
      {"server/store", common},
      // The stored forms of jobs.
      {"server/job/actor/job_codec.cc", Join(server_domain, {"server/job", "proto"})},
      // A job and its confirmation call each other.
      {"server/job", Join(server_domain, {"server/confirm"})},
      {"server/confirm", Join(server_domain, {"server/job"})},
      // Only main programs know what reproduces the literature.
      {"server/service/main.cc",
       Join(all_server, {"server/service", "server/research", "server/web"})},
      {"server/service", Join(all_server, {"proto"})},
      {"server/web", Join(all_server, {"server/service", "proto"})},
      {"server/research/lab", Join(all_server, {"server/research"})},
      {"server/research", Join(description, tuner)},
      {"worker/agent", Join(common, {"worker/sandbox", "proto"})},
      {"worker/sandbox", {"common/base"}},
      {"worker/compile/lower", {"common/ir", "common/target"}},
      {"worker/compile", Join(common, {"worker/compile/lower"})},
      {"worker/builder", Join(common, {"worker/compile", "worker/sandbox", "proto"})},
      {"worker/runner", Join(common, {"worker/sandbox", "proto"})},
      {"client/lookup", {"common/target"}},
      {"client/connection", Join(common, {"proto"})},
      // Exported networks contain the runtime, which is plain C.
      {"client/network/runtime", {"common/target"}},
      {"client/network/graph", {"common/ir"}},
      {"client/network/onnx", Join(common, {"client/network/graph"})},
      // The plan takes the tensors of kernels from their headers.
      {"client/network/plan", Join(common, network)},
      {"client/network/export",
       Join(Join(common, network), {"client/connection", "client/lookup"})},
      {"client/cli",
       Join(Join(common, network), {"client/connection", "client/network/onnx", "proto"})},
      {"client/python", Join(common, {"client/connection"})},
  };
}

// A package, given by the prefixes of its headers, and the folders or files that may include it.
// Tests may include every package.
struct Package {
  std::string name;
  std::vector<std::string> header_prefixes;
  std::vector<std::string> confined_to;
};

std::vector<Package> Packages() {
  return {
      // Domain code uses plain structs. The main programs of the builder and the runner read framed
      // messages; one file of server/job writes the stored forms of jobs. Commands print what a
      // server answers, so that they read its messages themselves: structs of their own would only
      // repeat the protocol.
      {"a generated protocol header",
       {"hone/v1/"},
       {"common/record", "server/service", "server/web", "server/job/actor/job_codec.cc",
        "worker/agent", "client/connection", "client/cli", "worker/builder/main.cc",
        "worker/runner/main.cc"}},
      {"Protobuf",
       {"google/protobuf/"},
       {"client/network/onnx/model_file.cc", "common/record", "common/rpc/status.cc",
        "server/service", "server/web", "server/job/actor/job_codec.cc", "worker/agent",
        "client/connection", "client/cli/output/json_output.cc", "worker/builder/main.cc",
        "worker/runner/main.cc"}},
      {"gRPC",
       {"grpcpp/", "grpc/", "grpc++/"},
       {"common/rpc", "server/service", "server/web", "worker/agent", "client/connection"}},
      {"LLVM", {"llvm/", "llvm-c/"}, {"worker/compile", "worker/builder"}},
      {"LLD", {"lld/"}, {"worker/builder"}},
      {"SQLite", {"sqlite3"}, {"server/store/sqlite"}},
      {"libpq", {"libpq", "pqxx/"}, {"server/store/postgres"}},
      {"XGBoost", {"xgboost/"}, {"server/tuner/cost_model"}},
      {"Eigen", {"Eigen/"}, {"server/research/model"}},
      {"Zstandard", {"zstd.h"}, {}},
      {"cpp-httplib", {"httplib"}, {"server/web"}},
      {"HDF5", {"hdf5.h"}, {"common/record/dataset.cc"}},
      {"CLI11", {"CLI/"}, {"common/base/command_line.cc"}},
      {"prometheus-cpp", {"prometheus/"}, {"server/service"}},
      {"zlib", {"zlib.h"}, {"common/base/deflate.cc"}},
      {"OpenSSL", {"openssl/"}, {"common/base/sha256.cc", "common/rpc"}},
      // Applications link client/lookup, which uses the standard library alone.
      {"Abseil",
       {"absl/"},
       {"common", "server", "worker", "client/connection", "client/network", "client/cli",
        "client/python", "client/network/onnx"}},
      {"xxHash", {"xxhash"}, {"common/base", "client/network/runtime/weights_memory.c"}},
      {"libseccomp", {"seccomp.h"}, {"worker/sandbox"}},
      {"the CUDA driver", {"cuda.h", "nvml.h"}, {"worker/runner"}},
      {"NVRTC", {"nvrtc.h"}, {"worker/builder"}},
      {"OpenCL",
       {"CL/"},
       {"common/target/open_gpu.cc", "common/target/opencl", "worker/runner",
        "client/network/runtime"}},
      {"ONNX", {"onnx/"}, {"client/network/onnx"}},
      {"GoogleTest", {"gtest/", "gmock/"}, {}},
      {"Google Benchmark", {"benchmark/benchmark.h"}, {}},
      {"oneDNN", {"dnnl", "oneapi/"}, {}},
      {"a BLAS", {"cblas", "openblas"}, {}},
  };
}

struct Include {
  std::string target;
  int line;
};

std::vector<Include> IncludesOf(const SourceFile& file) {
  std::vector<Include> includes;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(file.content, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "#")) continue;
    line = absl::StripLeadingAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "include")) continue;
    line = absl::StripLeadingAsciiWhitespace(line);
    if (line.empty() || (line[0] != '"' && line[0] != '<')) continue;
    const char close = line[0] == '"' ? '"' : '>';
    const size_t end = line.find(close, 1);
    if (end == absl::string_view::npos) continue;
    includes.push_back({std::string(line.substr(1, end - 1)), number});
  }
  return includes;
}

bool InFolder(absl::string_view path, absl::string_view folder) {
  return path == folder || (absl::StartsWith(path, folder) && path.size() > folder.size() &&
                            path[folder.size()] == '/');
}

bool IsCxx(absl::string_view path) {
  return absl::EndsWith(path, ".h") || absl::EndsWith(path, ".cc") || absl::EndsWith(path, ".c");
}

class Checker {
 public:
  explicit Checker(const std::vector<SourceFile>& files) : rooms_(Rooms()), packages_(Packages()) {
    for (const SourceFile& file : files) files_[file.path] = &file;
    for (const Room& room : rooms_) allowed_[room.folder] = Closure(room.folder);
  }

  std::vector<std::string> Run() {
    for (const auto& [path, file] : files_) {
      CheckLength(*file);
      if (IsCxx(path)) CheckIncludes(*file);
    }
    CheckFolders();
    std::sort(crossings_.begin(), crossings_.end());
    return std::move(crossings_);
  }

 private:
  std::set<std::string> Closure(const std::string& folder) const {
    std::set<std::string> closure;
    std::vector<std::string> open = {folder};
    while (!open.empty()) {
      const std::string next = open.back();
      open.pop_back();
      if (!closure.insert(next).second) continue;
      for (const Room& room : rooms_) {
        if (room.folder == next)
          open.insert(open.end(), room.may_include.begin(), room.may_include.end());
      }
    }
    return closure;
  }

  // Returns the folder of the table that contains a path, or "".
  std::string RoomOf(absl::string_view path) const {
    for (const Room& room : rooms_) {
      if (InFolder(path, room.folder)) return room.folder;
    }
    return "";
  }

  void CheckLength(const SourceFile& file) {
    if (absl::EndsWith(file.path, ".onnx") || absl::EndsWith(file.path, ".h5")) return;  // not text
    const auto lines = std::count(file.content.begin(), file.content.end(), '\n');
    const int most = InFolder(file.path, "tests") ? kMaxTestLines : kMaxLines;
    if (lines > most) {
      crossings_.push_back(
          absl::StrCat(file.path, ": ", lines, " lines; a file has ", most, " at most"));
    }
  }

  void CheckFolders() {
    std::map<std::string, int> sizes;
    for (const auto& [path, file] : files_) {
      if (!InFolder(path, "tests")) ++sizes[path.substr(0, path.rfind('/'))];
    }
    for (const auto& [folder, files] : sizes) {
      if (files > kMaxFiles) {
        crossings_.push_back(
            absl::StrCat(folder, ": ", files, " files; a folder has ", kMaxFiles, " at most"));
      }
    }
  }

  void CheckIncludes(const SourceFile& file) {
    if (InFolder(file.path, "tests")) return;
    const std::string room = RoomOf(file.path);
    if (room.empty()) {
      crossings_.push_back(
          absl::StrCat(file.path, ": this folder is not in the folder table of the architecture"));
      return;
    }
    for (const Include& include : IncludesOf(file)) {
      if (InFolder(include.target, "tests")) {
        crossings_.push_back(
            absl::StrCat(file.path, ":", include.line, ": includes a test, ", include.target));
      }
      const std::string other = RoomOf(include.target);
      if (!other.empty() && !allowed_.at(room).contains(other)) {
        crossings_.push_back(absl::StrCat(file.path, ":", include.line, ": ", room,
                                          " may not include ", other, " (", include.target, ")"));
      }
      CheckPackages(file, include);
    }
  }

  void CheckPackages(const SourceFile& file, const Include& include) {
    for (const Package& package : packages_) {
      const bool allowed =
          std::any_of(package.confined_to.begin(), package.confined_to.end(),
                      [&](const std::string& folder) { return InFolder(file.path, folder); });
      if (allowed) continue;
      std::set<std::string> seen;
      std::vector<std::string> way;
      if (!Reaches(include.target, package, seen, way)) continue;
      std::string through;
      if (way.size() > 1)
        through = absl::StrCat(" through ", absl::StrJoin(way.begin(), way.end() - 1, ", "));
      crossings_.push_back(absl::StrCat(file.path, ":", include.line, ": sees ", package.name, ", ",
                                        way.back(), through));
    }
  }

  // Whether including `header` includes a header of the package, directly or indirectly. `way` is
  // then the chain of headers.
  bool Reaches(const std::string& header, const Package& package, std::set<std::string>& seen,
               std::vector<std::string>& way) const {
    if (!seen.insert(header).second) return false;
    way.push_back(header);
    for (const std::string& prefix : package.header_prefixes) {
      if (absl::StartsWith(header, prefix)) return true;
    }
    if (auto it = files_.find(header); it != files_.end()) {
      for (const Include& include : IncludesOf(*it->second)) {
        if (Reaches(include.target, package, seen, way)) return true;
      }
    }
    way.pop_back();
    return false;
  }

  const std::vector<Room> rooms_;
  const std::vector<Package> packages_;
  std::map<std::string, const SourceFile*> files_;
  std::map<std::string, std::set<std::string>> allowed_;
  std::vector<std::string> crossings_;
};

}  // namespace

std::vector<std::string> FindCrossings(const std::vector<SourceFile>& files) {
  return Checker(files).Run();
}

}  // namespace hone::architecture
