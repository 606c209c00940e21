#include "common/record/dataset.h"

#include <hdf5.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"

namespace hone::record {
namespace {

constexpr int32_t kVersion = 1;
constexpr char kVersionName[] = "hone dataset version";
constexpr hsize_t kChunk = 16384;  // elements that are compressed together
constexpr unsigned kDeflateLevel = 9;
constexpr int64_t kWindow = 256;  // spaces that are read together
// Deflate compresses at most to a thousandth. A column that claims more is damaged, and no memory
// is allocated for it.
constexpr uintmax_t kMostExpansion = 1100;

// An identifier of the HDF5 library with the function that closes it.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() { Close(); }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&&) = delete;
  bool Close() { return id_ < 0 || close_(std::exchange(id_, -1)) >= 0; }
  bool ok() const { return id_ >= 0; }
  operator hid_t() const { return id_; }  // as the library's functions take it

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

template <class T>
hid_t NativeType();
template <>
hid_t NativeType<uint8_t>() {
  return H5T_NATIVE_UINT8;
}
template <>
hid_t NativeType<int32_t>() {
  return H5T_NATIVE_INT32;
}
template <>
hid_t NativeType<int64_t>() {
  return H5T_NATIVE_INT64;
}
template <>
hid_t NativeType<double>() {
  return H5T_NATIVE_DOUBLE;
}

absl::Status WriteError(const std::string& path) {
  return absl::ResourceExhaustedError(
      absl::StrCat(path, ": cannot write the dataset; is the disk full?"));
}

// A column that is being written.
template <class T>
class ColumnWriter {
 public:
  ColumnWriter(hid_t file, const char* name) : dataset_(Create(file, name), H5Dclose) {}

  bool Add(T value) {
    buffer_.push_back(value);
    return buffer_.size() < kChunk || Flush();
  }
  bool Flush() {
    if (!dataset_.ok()) return false;
    if (buffer_.empty()) return true;
    const hsize_t begin = size_, count = buffer_.size(), end = begin + count;
    size_ = end;
    if (H5Dset_extent(dataset_, &end) < 0) return false;
    const Handle space(H5Dget_space(dataset_), H5Sclose);
    const Handle memory(H5Screate_simple(1, &count, nullptr), H5Sclose);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &begin, nullptr, &count, nullptr);
    const bool written =
        H5Dwrite(dataset_, NativeType<T>(), memory, space, H5P_DEFAULT, buffer_.data()) >= 0;
    buffer_.clear();
    return written;
  }

 private:
  static hid_t Create(hid_t file, const char* name) {
    const hsize_t none = 0, unlimited = H5S_UNLIMITED;
    const Handle space(H5Screate_simple(1, &none, &unlimited), H5Sclose);
    const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_chunk(properties, 1, &kChunk);
    H5Pset_shuffle(properties);
    H5Pset_deflate(properties, kDeflateLevel);
    const Handle groups(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(groups, 1);
    return H5Dcreate2(file, name, NativeType<T>(), space, groups, properties, H5P_DEFAULT);
  }

  Handle dataset_;
  hsize_t size_ = 0;
  std::vector<T> buffer_;
};

// Texts, as one array of characters and one of the ends of the texts in it.
class TextWriter {
 public:
  TextWriter(hid_t file, const std::string& name)
      : characters_(file, name.c_str()), ends_(file, (name + "_end").c_str()) {}
  bool Add(absl::string_view text) {
    bool written = true;
    for (const char c : text) written &= characters_.Add(static_cast<uint8_t>(c));
    end_ += static_cast<int64_t>(text.size());
    return ends_.Add(end_) && written;
  }
  bool Flush() { return characters_.Flush() && ends_.Flush(); }

 private:
  ColumnWriter<uint8_t> characters_;
  ColumnWriter<int64_t> ends_;
  int64_t end_ = 0;
};

class FileWriter final : public DatasetWriter {
 public:
  FileWriter(std::string path, Handle file) : path_(std::move(path)), file_(std::move(file)) {}
  ~FileWriter() override {
    if (!finished_) std::filesystem::remove(PartOf(path_), ignored_);
  }

  static std::string PartOf(const std::string& path) { return path + ".part"; }

  int32_t Target(const DatasetTarget& target) override {
    return Index(targets_, target, [&] {
      is_modelled_.push_back(target.IsModelled());
      ok_ &= target_texts_.Add(target.text) && target_machines_.Add(target.machine);
    });
  }
  int32_t Task(const DatasetTask& task) override {
    return Index(tasks_, task, [&] {
      ok_ &= workloads_.Add(task.workload) && networks_.Add(task.network) &&
             tolerances_.Add(task.tolerance);
    });
  }
  int32_t Space(const std::string& text) override {
    return Index(spaces_, DigestOf(text), [&] { ok_ &= space_texts_.Add(text); });
  }
  int32_t Source(const std::string& name) override {
    return Index(sources_, name, [&] { ok_ &= source_names_.Add(name); });
  }

  absl::Status Append(const DatasetRecord& record) override {
    if (first_target_ < 0) first_target_ = record.target;
    if (is_modelled_[record.target] != is_modelled_[first_target_]) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_,
                       ": measured and modelled results cannot be in one dataset; build one "
                       "of each kind"));
    }
    for (const int64_t decision : record.decisions) ok_ &= decisions_.Add(decision);
    decisions_end_ += static_cast<int64_t>(record.decisions.size());
    ok_ &= target_.Add(record.target) && task_.Add(record.task) && space_.Add(record.space) &&
           source_.Add(record.source) && ends_.Add(decisions_end_) &&
           outcome_.Add(static_cast<int32_t>(record.outcome)) && latency_.Add(record.latency_ns) &&
           dispersion_.Add(record.dispersion) && created_.Add(record.created_unix_ms);
    return ok_ ? absl::OkStatus() : WriteError(path_);
  }

  absl::Status Finish() override {
    ok_ &= target_texts_.Flush() && target_machines_.Flush() && workloads_.Flush() &&
           networks_.Flush() && tolerances_.Flush() && space_texts_.Flush() &&
           source_names_.Flush() && target_.Flush() && task_.Flush() && space_.Flush() &&
           source_.Flush() && decisions_.Flush() && ends_.Flush() && outcome_.Flush() &&
           latency_.Flush() && dispersion_.Flush() && created_.Flush();
    ok_ &= H5Fflush(file_, H5F_SCOPE_GLOBAL) >= 0;
    if (!ok_) return WriteError(path_);
    std::error_code error;
    std::filesystem::rename(PartOf(path_), path_, error);
    if (error) return absl::InternalError(absl::StrCat(path_, ": ", error.message()));
    finished_ = true;
    return absl::OkStatus();
  }

 private:
  template <class T, class Add>
  static int32_t Index(std::map<T, int32_t>& known, const T& value, const Add& add) {
    const auto [found, fresh] = known.try_emplace(value, static_cast<int32_t>(known.size()));
    if (fresh) add();
    return found->second;
  }

  const std::string path_;
  Handle file_;
  std::error_code ignored_;
  std::vector<bool> is_modelled_;  // by target
  int32_t first_target_ = -1;      // of the first record
  bool ok_ = true, finished_ = false;
  std::map<DatasetTarget, int32_t> targets_;
  std::map<DatasetTask, int32_t> tasks_;
  std::map<Digest, int32_t> spaces_;
  std::map<std::string, int32_t> sources_;
  TextWriter target_texts_{file_, "targets/text"}, target_machines_{file_, "targets/machine"},
      workloads_{file_, "tasks/workload"}, networks_{file_, "tasks/network"},
      space_texts_{file_, "spaces/text"}, source_names_{file_, "sources/name"};
  ColumnWriter<double> tolerances_{file_, "tasks/tolerance"};
  ColumnWriter<int32_t> target_{file_, "records/target"}, task_{file_, "records/task"},
      space_{file_, "records/space"}, source_{file_, "records/source"},
      outcome_{file_, "records/outcome"};
  ColumnWriter<int64_t> decisions_{file_, "records/decisions"},
      ends_{file_, "records/decisions_end"}, created_{file_, "records/created_unix_ms"};
  ColumnWriter<double> latency_{file_, "records/latency_ns"},
      dispersion_{file_, "records/dispersion"};
  int64_t decisions_end_ = 0;
};

class FileReader final : public Dataset {
 public:
  FileReader(std::string path, Handle file, uintmax_t file_bytes, Spaces where)
      : path_(std::move(path)), file_(std::move(file)), file_bytes_(file_bytes), where_(where) {}

  absl::Status ReadDescriptions() {
    int32_t version = 0;
    const Handle attribute(H5Aopen(file_, kVersionName, H5P_DEFAULT), H5Aclose);
    if (!attribute.ok() || H5Aread(attribute, H5T_NATIVE_INT32, &version) < 0)
      return Error("not a dataset of Hone");
    if (version > kVersion) {
      return Error(absl::StrCat("a dataset of version ", version, "; this program reads ", kVersion,
                                ": use the program that wrote it, or a newer one"));
    }
    std::vector<std::string> texts, machines, workloads, networks;
    HONE_ASSIGN_OR_RETURN(texts, ReadTexts("targets/text"));
    HONE_ASSIGN_OR_RETURN(machines, ReadTexts("targets/machine"));
    HONE_ASSIGN_OR_RETURN(workloads, ReadTexts("tasks/workload"));
    HONE_ASSIGN_OR_RETURN(networks, ReadTexts("tasks/network"));
    HONE_ASSIGN_OR_RETURN(space_count_, SizeOf("spaces/text_end"));
    if (where_ == Spaces::kInMemory) {
      HONE_ASSIGN_OR_RETURN(spaces_, ReadTexts("spaces/text"));
    }
    HONE_ASSIGN_OR_RETURN(sources_, ReadTexts("sources/name"));
    HONE_ASSIGN_OR_RETURN(const int64_t tolerances, SizeOf("tasks/tolerance"));
    if (texts.size() != machines.size() || workloads.size() != networks.size() ||
        tolerances != static_cast<int64_t>(workloads.size())) {
      return Damaged();
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<double> tolerance,
                          ReadColumn<double>("tasks/tolerance", 0, tolerances));
    for (size_t i = 0; i < texts.size(); ++i) targets_.push_back({texts[i], machines[i]});
    for (size_t i = 0; i < workloads.size(); ++i)
      tasks_.push_back({workloads[i], networks[i], tolerance[i]});
    HONE_ASSIGN_OR_RETURN(size_, SizeOf("records/latency_ns"));
    for (const char* column :
         {"records/target", "records/task", "records/space", "records/source", "records/outcome",
          "records/decisions_end", "records/dispersion", "records/created_unix_ms"}) {
      HONE_ASSIGN_OR_RETURN(const int64_t size, SizeOf(column));
      if (size != size_) return Damaged();
    }
    return absl::OkStatus();
  }

  const std::vector<DatasetTarget>& targets() const override { return targets_; }
  const std::vector<DatasetTask>& tasks() const override { return tasks_; }
  const std::vector<std::string>& spaces() const override { return spaces_; }
  const std::vector<std::string>& sources() const override { return sources_; }
  int64_t size() const override { return size_; }

  absl::StatusOr<std::string> ReadSpace(int32_t index) override {
    if (index < 0 || index >= space_count_) return Damaged();
    if (index < window_first_ || index >= window_first_ + static_cast<int64_t>(window_.size())) {
      window_first_ = index;
      HONE_ASSIGN_OR_RETURN(window_, ReadTexts("spaces/text", index,
                                               std::min<int64_t>(kWindow, space_count_ - index)));
    }
    return window_[index - window_first_];
  }

  absl::StatusOr<std::vector<DatasetRecord>> Read(int64_t first, int64_t count) override {
    first = std::clamp<int64_t>(first, 0, size_);
    count = std::clamp<int64_t>(count, 0, size_ - first);
    if (count == 0) return std::vector<DatasetRecord>();
    std::vector<int32_t> target, task, space, source, outcome;
    std::vector<double> latency, dispersion;
    HONE_ASSIGN_OR_RETURN(target, ReadColumn<int32_t>("records/target", first, count));
    HONE_ASSIGN_OR_RETURN(task, ReadColumn<int32_t>("records/task", first, count));
    HONE_ASSIGN_OR_RETURN(space, ReadColumn<int32_t>("records/space", first, count));
    HONE_ASSIGN_OR_RETURN(source, ReadColumn<int32_t>("records/source", first, count));
    HONE_ASSIGN_OR_RETURN(outcome, ReadColumn<int32_t>("records/outcome", first, count));
    HONE_ASSIGN_OR_RETURN(latency, ReadColumn<double>("records/latency_ns", first, count));
    HONE_ASSIGN_OR_RETURN(dispersion, ReadColumn<double>("records/dispersion", first, count));
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> created,
                          ReadColumn<int64_t>("records/created_unix_ms", first, count));
    // The end of the record before the first one is the begin of the first one.
    const int64_t before = first > 0 ? 1 : 0;
    HONE_ASSIGN_OR_RETURN(
        std::vector<int64_t> ends,
        ReadColumn<int64_t>("records/decisions_end", first - before, count + before));
    if (before == 0) ends.insert(ends.begin(), 0);
    for (size_t i = 1; i < ends.size(); ++i) {
      if (ends[i - 1] < 0 || ends[i] < ends[i - 1] || ends[i] - ends[i - 1] > kMostDatasetDecisions)
        return Damaged();
    }
    HONE_ASSIGN_OR_RETURN(
        const std::vector<int64_t> decisions,
        ReadColumn<int64_t>("records/decisions", ends.front(), ends.back() - ends.front()));
    std::vector<DatasetRecord> records;
    for (size_t i = 0; i < latency.size(); ++i) {
      const auto is_index = [](int32_t index, size_t size) {
        return index >= 0 && static_cast<size_t>(index) < size;
      };
      const bool ok = outcome[i] == static_cast<int32_t>(Outcome::kOk);
      if (!is_index(target[i], targets_.size()) || !is_index(task[i], tasks_.size()) ||
          !is_index(space[i], space_count_) || !is_index(source[i], sources_.size()) ||
          !absl::c_linear_search(AllOutcomes(), static_cast<Outcome>(outcome[i])) ||
          !(ok ? latency[i] > 0 && std::isfinite(latency[i]) : latency[i] == 0)) {
        return Damaged();
      }
      records.push_back({.target = target[i],
                         .task = task[i],
                         .space = space[i],
                         .source = source[i],
                         .decisions = {decisions.begin() + (ends[i] - ends[0]),
                                       decisions.begin() + (ends[i + 1] - ends[0])},
                         .outcome = static_cast<Outcome>(outcome[i]),
                         .latency_ns = latency[i],
                         .dispersion = dispersion[i],
                         .created_unix_ms = created[i]});
    }
    return records;
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", what));
  }
  absl::Status Damaged() const {
    return Error("the dataset is damaged or truncated; make it again");
  }

  // Does not follow links to other files.
  Handle OpenColumn(const std::string& name) const {
    const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
    H5Pset_elink_cb(
        access,
        [](const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) -> herr_t {
          return -1;
        },
        nullptr);
    return Handle(H5Dopen2(file_, name.c_str(), access), H5Dclose);
  }

  absl::StatusOr<int64_t> SizeOf(const std::string& name) const {
    const Handle column = OpenColumn(name);
    if (!column.ok()) return Damaged();
    // The bytes of a column that is not in chunks may be in other files.
    const Handle properties(H5Dget_create_plist(column), H5Pclose);
    const Handle space(H5Dget_space(column), H5Sclose);
    if (H5Pget_layout(properties) != H5D_CHUNKED || H5Sget_simple_extent_ndims(space) != 1)
      return Damaged();
    return H5Sget_simple_extent_npoints(space);
  }

  template <class T>
  absl::StatusOr<std::vector<T>> ReadColumn(const std::string& name, int64_t first,
                                            int64_t count) const {
    HONE_ASSIGN_OR_RETURN(const int64_t size, SizeOf(name));
    if (first < 0 || count < 0 || first > size || count > size - first ||
        static_cast<uintmax_t>(count) > kMostExpansion * file_bytes_ / sizeof(T)) {
      return Damaged();
    }
    std::vector<T> values(count);
    if (count == 0) return values;
    const Handle column = OpenColumn(name);
    const Handle space(H5Dget_space(column), H5Sclose);
    const hsize_t begin = first, length = count;
    const Handle memory(H5Screate_simple(1, &length, nullptr), H5Sclose);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &begin, nullptr, &length, nullptr);
    if (H5Dread(column, NativeType<T>(), memory, space, H5P_DEFAULT, values.data()) < 0)
      return Damaged();
    return values;
  }

  absl::StatusOr<std::vector<std::string>> ReadTexts(const std::string& name) const {
    HONE_ASSIGN_OR_RETURN(const int64_t texts, SizeOf(name + "_end"));
    return ReadTexts(name, 0, texts);
  }
  absl::StatusOr<std::vector<std::string>> ReadTexts(const std::string& name, int64_t first,
                                                     int64_t count) const {
    // The end of the text before the first one is the begin of the first one.
    const int64_t before = first > 0 ? 1 : 0;
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> ends,
                          ReadColumn<int64_t>(name + "_end", first - before, count + before));
    if (before == 0) ends.insert(ends.begin(), 0);
    if (ends[0] < 0 || !absl::c_is_sorted(ends)) return Damaged();
    HONE_ASSIGN_OR_RETURN(const std::vector<uint8_t> characters,
                          ReadColumn<uint8_t>(name, ends.front(), ends.back() - ends.front()));
    std::vector<std::string> result;
    for (size_t i = 1; i < ends.size(); ++i) {
      result.emplace_back(characters.begin() + (ends[i - 1] - ends[0]),
                          characters.begin() + (ends[i] - ends[0]));
    }
    return result;
  }

  const std::string path_;
  Handle file_;
  const uintmax_t file_bytes_;
  const Spaces where_;
  std::vector<DatasetTarget> targets_;
  std::vector<DatasetTask> tasks_;
  std::vector<std::string> spaces_, sources_;
  int64_t space_count_ = 0;
  int64_t window_first_ = 0;  // spaces that ReadSpace has read together
  std::vector<std::string> window_;
  int64_t size_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DatasetWriter>> DatasetWriter::Create(const std::string& path) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors are returned, not printed
  Handle file(H5Fcreate(FileWriter::PartOf(path).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
              H5Fclose);
  const Handle scalar(H5Screate(H5S_SCALAR), H5Sclose);
  const Handle version(
      H5Acreate2(file, kVersionName, H5T_NATIVE_INT32, scalar, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!version.ok() || H5Awrite(version, H5T_NATIVE_INT32, &kVersion) < 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        path, ": cannot create the dataset; does its folder exist, and may it be written?"));
  }
  return std::make_unique<FileWriter>(path, std::move(file));
}

absl::StatusOr<std::unique_ptr<Dataset>> Dataset::Open(const std::string& path, Spaces where) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return absl::NotFoundError(absl::StrCat(path, ": no such dataset"));
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!file.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a dataset (an HDF5 file), or truncated"));
  }
  auto dataset = std::make_unique<FileReader>(path, std::move(file), bytes, where);
  HONE_RETURN_IF_ERROR(dataset->ReadDescriptions());
  return dataset;
}

}  // namespace hone::record
