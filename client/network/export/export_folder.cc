#include "client/network/export/export_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone::client {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kSuffix[] = ".export.json";

// What NAME.export.json says.
struct Noted {
  ExportFacts facts;
  std::vector<std::string> files;  // relative to the folder
};

std::string ToText(const ExportFacts& facts, const std::vector<std::string>& files) {
  Json json = {
      {"hone_export", 1}, {"kind", facts.kind}, {"of", facts.title}, {"digest", facts.digest}};
  if (!facts.shapes.empty()) json["shapes"] = facts.shapes;
  json["target"] = facts.target;
  json["tolerance"] = facts.tolerance;
  json["kernels"] = facts.kernels;
  json["measured_kernels"] = facts.measured;
  json["files"] = files;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// nullopt: the text is not what ToText writes.
std::optional<Noted> Parse(absl::string_view text) {
  Noted noted;
  try {
    const Json json = Json::parse(text.begin(), text.end());
    if (json.at("hone_export") != 1) return std::nullopt;
    json.at("kind").get_to(noted.facts.kind);
    json.at("of").get_to(noted.facts.title);
    json.at("digest").get_to(noted.facts.digest);
    noted.facts.shapes = json.value("shapes", "");
    json.at("target").get_to(noted.facts.target);
    json.at("tolerance").get_to(noted.facts.tolerance);
    json.at("kernels").get_to(noted.facts.kernels);
    json.at("measured_kernels").get_to(noted.facts.measured);
    json.at("files").get_to(noted.files);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  return noted;
}

// What keeps an export from replacing an earlier one; "" if nothing does. `path`: the file that
// describes the earlier one.
std::string WhyNot(const std::string& path, const ExportFacts& there, const ExportFacts& now) {
  const auto of = [&](absl::string_view what) { return absl::StrCat(path, " is ", what); };
  if (there.kind != now.kind) return of(absl::StrCat("of the ", there.kind, " ", there.title));
  if (there.digest != now.digest) {
    return of(absl::StrCat("of another ", now.kind == "network" ? "network" : "workload", ", ",
                           there.title));
  }
  if (there.shapes != now.shapes) return of(absl::StrCat("of other shapes, ", there.shapes));
  if (there.target != now.target) return of(absl::StrCat("for another target, ", there.target));
  if (there.tolerance != now.tolerance) {
    return of(
        absl::StrCat("of a search with tolerance ", there.tolerance, ", not ", now.tolerance));
  }
  // Without drafts, there may be fewer kernels, because more sizes are padded.
  if (there.measured > now.measured && now.measured < now.kernels) {
    return of(absl::StrCat("of an export in which ", there.measured, " of ", there.kernels,
                           " kernels were measured, and now ", now.measured, " of ", now.kernels,
                           " are, because the others are drafts"));
  }
  return "";
}

// Whether a file that NAME.export.json names can be one of that export. The folder may have been
// filled by somebody else.
bool IsFileOf(absl::string_view name, const std::string& file) {
  const fs::path path(file);
  if (path.is_absolute() || absl::c_linear_search(path, "..")) return false;
  return absl::StartsWith(file, name) || absl::StartsWith(file, absl::StrCat("lib", name));
}

// Whether an export in the folder, other than that of this name, has the file.
bool OthersHave(const std::string& folder, absl::string_view name, const std::string& file) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string note = entry.path().filename().string();
    if (!absl::EndsWith(note, kSuffix) || note == absl::StrCat(name, kSuffix)) continue;
    const absl::StatusOr<std::string> text = ReadFile(entry.path().string());
    const std::optional<Noted> noted = text.ok() ? Parse(*text) : std::nullopt;
    if (noted.has_value() && absl::c_linear_search(noted->files, file)) return true;
  }
  return false;
}

}  // namespace

std::string ExportFolder::PathOf(absl::string_view file) const {
  return (fs::path(folder_) / std::string(file)).string();
}

ExportFolder::~ExportFolder() {
  std::error_code error;
  if (!scratch_.empty()) fs::remove_all(scratch_, error);
  // Folders with files are not removed.
  for (auto made = made_.rbegin(); made != made_.rend(); ++made) fs::remove(*made, error);
}

absl::Status ExportFolder::Check(const ExportFacts& facts,
                                 absl::Span<const std::string> files) const {
  if (overwrite_) return absl::OkStatus();
  const std::string path = PathOf(facts.name + kSuffix);
  std::string why;
  std::vector<std::string> own;  // files of an earlier export of this name
  if (const absl::StatusOr<std::string> text = ReadFile(path); text.ok()) {
    const std::optional<Noted> noted = Parse(*text);
    why = noted.has_value() ? WhyNot(path, noted->facts, facts)
                            : absl::StrCat(path, " does not describe an export");
    if (noted.has_value()) own = noted->files;
  }
  // A file may belong to an export of another name: "a" and "liba" both have liba.so.
  for (const std::string& file : files) {
    std::error_code unknown;
    if (!why.empty()) break;
    if (absl::c_linear_search(own, file)) continue;
    if (absl::c_linear_search(shared_, file) && OthersHave(folder_, facts.name, file)) continue;
    if (fs::exists(fs::symlink_status(PathOf(file), unknown))) {
      why = absl::StrCat(PathOf(file), " exists, and is not of an earlier export of this name");
    }
  }
  if (why.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(why);
}

absl::StatusOr<std::string> ExportFolder::Scratch() {
  if (!scratch_.empty()) return scratch_;
  std::error_code error;
  for (fs::path path = fs::path(folder_ + "/").parent_path();
       !path.empty() && !fs::exists(path, error) && path != path.parent_path();
       path = path.parent_path()) {
    made_.insert(made_.begin(), path.string());
  }
  const std::string scratch = PathOf(absl::StrCat(".export-", static_cast<int64_t>(getpid())));
  fs::create_directories(scratch, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot make the folder ", folder_));
  return scratch_ = scratch;
}

absl::Status ExportFolder::Write(const std::string& file, absl::string_view content) {
  HONE_ASSIGN_OR_RETURN(const std::string scratch, Scratch());
  return WriteFileAtomically(absl::StrCat(scratch, "/", file), content);
}

absl::Status ExportFolder::Add(const ExportFacts& facts, std::vector<std::string> files) {
  const std::string note = facts.name + kSuffix;
  files.push_back(note);
  for (const Added& other : added_) {
    for (const std::string& file : files) {
      if (absl::c_linear_search(shared_, file) || !absl::c_linear_search(other.files, file))
        continue;
      return absl::InvalidArgumentError(absl::StrCat(
          PathOf(file), " would be a file of ", other.facts.name, " and of ", facts.name,
          "; export them into different folders, or one of them with another --name"));
    }
  }
  HONE_RETURN_IF_ERROR(Write(note, ToText(facts, files)));
  added_.push_back({facts, std::move(files)});
  return absl::OkStatus();
}

// Moves files, and takes all moves back unless they are kept.
class ExportFolder::Moves {
 public:
  // `saved`: a folder for the files that are replaced.
  explicit Moves(std::string saved) : saved_(std::move(saved)) {}
  ~Moves() {
    std::error_code error;
    for (auto move = done_.rbegin(); move != done_.rend(); ++move) {
      if (move->saved.empty()) {
        fs::remove(move->path, error);
      } else {
        fs::rename(move->saved, move->path, error);
      }
    }
  }

  absl::Status Move(const std::string& from, const std::string& to) {
    std::error_code error;
    const auto fail = [&] { return ErrnoStatus(error.value(), absl::StrCat("write ", to)); };
    fs::create_directories(fs::path(to).parent_path(), error);
    if (error) return fail();
    const fs::file_status there = fs::symlink_status(to, error);
    if (fs::is_directory(there)) return ErrnoStatus(EISDIR, absl::StrCat("write ", to));
    std::string saved;
    if (fs::exists(there)) {
      saved = absl::StrCat(saved_, "/", done_.size());
      // A second name for the old file, so that programs find it or the new one at any time. Some
      // file systems have no such names.
      fs::create_hard_link(to, saved, error);
      if (error) fs::rename(to, saved, error);
      if (error) return fail();
    }
    done_.push_back({to, saved});
    fs::rename(from, to, error);
    return error ? fail() : absl::OkStatus();
  }
  void Keep() { done_.clear(); }

 private:
  struct Done {
    std::string path;
    std::string saved;  // the replaced file; "" if there was none
  };
  const std::string saved_;
  std::vector<Done> done_;
};

absl::StatusOr<std::vector<std::vector<ExportedFile>>> ExportFolder::Commit() {
  std::vector<std::vector<ExportedFile>> exported;
  if (added_.empty()) return exported;
  const int lock = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0) return ErrnoStatus(errno, absl::StrCat("open ", folder_));
  const auto unlock = absl::MakeCleanup([lock] { close(lock); });
  if (flock(lock, LOCK_EX) != 0) return ErrnoStatus(errno, absl::StrCat("lock ", folder_));
  std::error_code error;
  std::vector<std::string> replaced;
  for (const Added& added : added_) {
    HONE_RETURN_IF_ERROR(Check(added.facts, added.files));
    const absl::StatusOr<std::string> text = ReadFile(PathOf(added.facts.name + kSuffix));
    const std::optional<Noted> before = text.ok() ? Parse(*text) : std::nullopt;
    if (!before.has_value()) continue;
    for (const std::string& file : before->files) {
      if (IsFileOf(added.facts.name, file)) replaced.push_back(file);
    }
  }
  const std::string saved = scratch_ + "/.saved";
  fs::create_directories(saved, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("write into ", scratch_));
  Moves moves(saved);
  for (const Added& added : added_) {
    std::vector<ExportedFile>& files = exported.emplace_back();
    for (const std::string& file : added.files) {
      const std::string path = PathOf(file);
      const std::string from = absl::StrCat(scratch_, "/", file);
      // A shared file may have been moved with an export before.
      const bool moved = absl::c_linear_search(shared_, file) && !fs::exists(from, error);
      if (!moved) HONE_RETURN_IF_ERROR(moves.Move(from, path));
      files.push_back({path, static_cast<int64_t>(fs::file_size(path, error))});
      std::erase(replaced, file);
    }
  }
  moves.Keep();
  for (const std::string& file : replaced) {
    if (!OthersHave(folder_, "", file)) fs::remove(PathOf(file), error);
  }
  fsync(lock);
  made_.clear();
  added_.clear();
  return exported;
}

}  // namespace hone::client
