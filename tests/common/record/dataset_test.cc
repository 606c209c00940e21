#include "common/record/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::record {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DatasetTest : public testing::Test {
 protected:
  // Writes `count` records of two tasks and returns them.
  std::vector<DatasetRecord> Write(int64_t count) {
    auto writer = *DatasetWriter::Create(path_);
    std::vector<DatasetRecord> records;
    for (int64_t i = 0; i < count; ++i) {
      DatasetRecord record{
          .target = writer->Target({"target arch=x86_64", "a machine"}),
          .task = writer->Task(i % 2 == 0 ? DatasetTask{"workload a", "", 0}
                                          : DatasetTask{"workload b", "resnet", 1e-3}),
          .space = writer->Space("space " + std::to_string(i % 3)),
          .source = writer->Source("random"),
          .outcome = i % 5 == 4 ? Outcome::kCrash : Outcome::kOk,
          .latency_ns = i % 5 == 4 ? 0 : 100.0 + static_cast<double>(i),
          .dispersion = 0.01,
          .created_unix_ms = 1'700'000'000'000 + i};
      for (int64_t d = 0; d < i % 7; ++d) record.decisions.push_back(d * i - 3);
      EXPECT_THAT(writer->Append(record), IsOk());
      records.push_back(record);
    }
    EXPECT_THAT(writer->Finish(), IsOk());
    return records;
  }

  std::string Bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void WriteBytes(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "data.h5";
};

TEST_F(DatasetTest, ReadsWhatWasWritten) {
  const std::vector<DatasetRecord> records = Write(40'000);  // several chunks
  HONE_ASSERT_OK_AND_ASSIGN(const auto dataset, Dataset::Open(path_));
  EXPECT_THAT(dataset->targets(), ElementsAre(DatasetTarget{"target arch=x86_64", "a machine"}));
  EXPECT_THAT(dataset->tasks(), ElementsAre(DatasetTask{"workload a", "", 0},
                                            DatasetTask{"workload b", "resnet", 1e-3}));
  EXPECT_THAT(dataset->spaces(), ElementsAre("space 0", "space 1", "space 2"));
  EXPECT_THAT(dataset->sources(), ElementsAre("random"));
  ASSERT_EQ(dataset->size(), 40'000);
  HONE_ASSERT_OK_AND_ASSIGN(const auto all, dataset->Read(0, 50'000));
  EXPECT_EQ(all, records);
  HONE_ASSERT_OK_AND_ASSIGN(const auto some, dataset->Read(39'990, 100));
  EXPECT_EQ(some, std::vector<DatasetRecord>(records.begin() + 39'990, records.end()));
}

TEST_F(DatasetTest, MayBeEmpty) {
  Write(0);
  HONE_ASSERT_OK_AND_ASSIGN(const auto dataset, Dataset::Open(path_));
  HONE_ASSERT_OK_AND_ASSIGN(const auto none, dataset->Read(0, 10));
  EXPECT_THAT(none, IsEmpty());
}

TEST_F(DatasetTest, NeverMixesModelledAndMeasuredResults) {
  const auto writer = *DatasetWriter::Create(path_);
  const int32_t modelled = writer->Target({"target arch=aarch64", "modelled: a CPU"});
  const int32_t measured = writer->Target({"target arch=aarch64", "a CPU"});
  writer->Task({"workload a", "", 0});
  writer->Space("space 0");
  writer->Source("random");
  EXPECT_THAT(writer->Append({.target = modelled, .latency_ns = 1}), IsOk());
  EXPECT_THAT(writer->Append({.target = modelled, .latency_ns = 2}), IsOk());
  EXPECT_THAT(writer->Append({.target = measured, .latency_ns = 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("measured and modelled results cannot be in one dataset")));
}

TEST_F(DatasetTest, AppearsOnlyWhenItIsFinished) {
  {
    auto writer = *DatasetWriter::Create(path_);
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_THAT(DatasetWriter::Create(folder_ / "none/data.h5"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("none/data.h5")));
}

TEST_F(DatasetTest, RefusesOtherFiles) {
  EXPECT_THAT(Dataset::Open(path_), StatusIs(absl::StatusCode::kNotFound, HasSubstr("data.h5")));
  WriteBytes("not HDF5");
  EXPECT_THAT(Dataset::Open(path_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a dataset")));
  H5Fclose(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  EXPECT_THAT(Dataset::Open(path_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a dataset of Hone")));
}

TEST_F(DatasetTest, RefusesNewerVersions) {
  Write(3);
  const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t version = H5Aopen(file, "hone dataset version", H5P_DEFAULT);
  const int newer = 99;
  H5Awrite(version, H5T_NATIVE_INT, &newer);
  H5Aclose(version);
  H5Fclose(file);
  EXPECT_THAT(Dataset::Open(path_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("version 99")));
}

// Every truncation is refused or gives an error when it is read, and never crashes.
TEST_F(DatasetTest, NoticesTruncation) {
  Write(5'000);
  const std::string bytes = Bytes();
  for (size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 40) {
    WriteBytes(bytes.substr(0, size));
    const auto dataset = Dataset::Open(path_);
    EXPECT_FALSE(dataset.ok() && (*dataset)->Read(0, 5'000).ok()) << size;
  }
}

// A column that claims to be huge is refused before memory is allocated for it.
TEST_F(DatasetTest, RefusesHostileSizes) {
  for (const int bits : {50, 60, 61, 62}) {  // with 61, the number of bytes is 2^64
    Write(10);
    const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    for (const char* name : {"spaces/text_end", "targets/text_end"}) {
      const hid_t column = H5Dopen2(file, name, H5P_DEFAULT);
      const hsize_t huge = hsize_t{1} << bits;
      H5Dset_extent(column, &huge);
      H5Dclose(column);
    }
    H5Fclose(file);
    EXPECT_THAT(Dataset::Open(path_),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("damaged")))
        << bits;
  }
}

// A file of somebody else must not show what is in files of this user.
TEST_F(DatasetTest, ReadsNoOtherFiles) {
  const std::string other = folder_ / "token";
  std::ofstream(other) << "secret";
  constexpr char kColumn[] = "sources/name";
  const auto open_without_column = [&] {
    Write(10);
    const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    H5Ldelete(file, kColumn, H5P_DEFAULT);
    return file;
  };
  hid_t file = open_without_column();
  const hsize_t size = 6;  // as "random"
  const hid_t space = H5Screate_simple(1, &size, nullptr);
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(properties, other.c_str(), 0, size);
  H5Dclose(
      H5Dcreate2(file, kColumn, H5T_NATIVE_UINT8, space, H5P_DEFAULT, properties, H5P_DEFAULT));
  H5Pclose(properties);
  H5Sclose(space);
  H5Fclose(file);
  EXPECT_THAT(Dataset::Open(path_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("damaged")));

  Write(10);
  std::filesystem::copy_file(path_, folder_ / "other.h5");
  file = open_without_column();
  H5Lcreate_external((folder_ / "other.h5").c_str(), kColumn, file, kColumn, H5P_DEFAULT,
                     H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_THAT(Dataset::Open(path_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("damaged")));
}

TEST_F(DatasetTest, RefusesIndicesOutOfRange) {
  Write(10);
  const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t column = H5Dopen2(file, "records/space", H5P_DEFAULT);
  const std::vector<int> spaces(10, 77);
  H5Dwrite(column, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, spaces.data());
  H5Dclose(column);
  H5Fclose(file);
  HONE_ASSERT_OK_AND_ASSIGN(const auto dataset, Dataset::Open(path_));
  EXPECT_THAT(dataset->Read(0, 10),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("damaged")));
}

}  // namespace
}  // namespace hone::record
