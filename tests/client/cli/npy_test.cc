#include "client/cli/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/rng.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::client {
namespace {

using ::testing::ElementsAre;

// Returns a file made of version, dictionary and data.
std::string File(int major, const std::string& dictionary, const std::string& data) {
  std::string file("\x93NUMPY", 6);
  file += static_cast<char>(major);
  file += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) {
    file += static_cast<char>(dictionary.size() >> (8 * i) & 0xff);
  }
  return file + dictionary + data;
}

constexpr char kDictionary[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";

TEST(Npy, ReadsVersionsOneAndTwo) {
  const std::string data(24, '\x2a');
  for (const int major : {1, 2}) {
    const std::string file = File(major, kDictionary, data);
    HONE_ASSERT_OK_AND_ASSIGN(const auto array, ParseNpy(file));
    EXPECT_EQ(array.type, "f4");
    EXPECT_THAT(array.shape, ElementsAre(2, 3));
    EXPECT_EQ(array.data, data);
    EXPECT_THAT(CheckNpy(array, ir::DType::kF32, {2, 3}), IsOk());
  }
}

TEST(Npy, AcceptsHeaderVariants) {
  for (const char* dictionary : {
           "{\"shape\":(2,3),\"descr\":\"<f4\",\"fortran_order\":False}",
           "  { 'shape' : ( 2L, 3L , ) , 'fortran_order' : False, 'descr' : '=f4' , }   \n",
       }) {
    EXPECT_THAT(ParseNpy(File(1, dictionary, std::string(24, 'x'))), IsOk()) << dictionary;
  }
  // With one dimension both orders are the same; a scalar has no dimension.
  EXPECT_THAT(ParseNpy(File(1, "{'descr': '|i1', 'fortran_order': True, 'shape': (5,)}", "12345")),
              IsOk());
  EXPECT_THAT(ParseNpy(File(1, "{'descr': '>i1', 'fortran_order': False, 'shape': ()}", "1")),
              IsOk());
}

TEST(Npy, WrittenHeadersRoundTrip) {
  for (int d = 0; d <= static_cast<int>(ir::DType::kF8E5M2); ++d) {
    const auto dtype = static_cast<ir::DType>(d);
    for (const ir::Shape& shape : {ir::Shape{}, ir::Shape{7}, ir::Shape{2, 3, 4}}) {
      const std::string header = NpyHeader(dtype, shape);
      EXPECT_EQ(header.size() % 64, 0u);
      EXPECT_EQ(header.back(), '\n');
      const std::string file =
          header + std::string(ir::ElementsOf(shape) * ir::DTypeBytes(dtype), '\1');
      HONE_ASSERT_OK_AND_ASSIGN(const auto array, ParseNpy(file));
      EXPECT_THAT(CheckNpy(array, dtype, shape), IsOk());
    }
  }
}

TEST(Npy, FindsElementsOutsideOfABound) {
  GoldenOfTest golden;
  const auto check = [](ir::DType dtype, std::string data, int64_t bound) {
    const NpyArray array = {.data = data};
    return std::string(CheckBelow(array, dtype, bound).message());
  };
  EXPECT_EQ(check(ir::DType::kI32, std::string("\x01\0\0\0\x07\0\0\0", 8), 8), "");
  EXPECT_EQ(check(ir::DType::kI32, std::string("\x01\0\0\0\x08\0\0\0", 8), 8),
            "its element 1 is 8; the workload declares elements from 0 to 7");
  golden.Add(check(ir::DType::kI32, "\xff\xff\xff\xff", 8));
  golden.Add(check(ir::DType::kI8, "\xff", 8));
  golden.Add(check(ir::DType::kU8, "\xff", 8));
  golden.Add(check(ir::DType::kI64, std::string(8, '\xff'), 8));
}

TEST(Npy, PacksElementsOfFourBits) {
  const NpyArray array = {.data = absl::string_view("\x07\xf8\x01", 3)};
  HONE_ASSERT_OK_AND_ASSIGN(const auto packed, PackNpy(array, ir::DType::kI4));
  EXPECT_EQ(packed, "\x87\x01");
  EXPECT_EQ(PackNpy(array, ir::DType::kU4).status().message(),
            "its element 1 is 248, which is not a value of u4");
  EXPECT_EQ(PackNpy({.data = "\x08"}, ir::DType::kI4).status().message(),
            "its element 0 is 8, which is not a value of i4");
}

TEST(Npy, RejectsMismatchedTypesAndShapes) {
  GoldenOfTest golden;
  const std::string file = File(1, kDictionary, std::string(24, 'x'));
  const NpyArray array = ParseNpy(file).value();
  golden.Add(CheckNpy(array, ir::DType::kF64, {2, 3}).message());
  golden.Add(CheckNpy(array, ir::DType::kF32, {6}).message());
  EXPECT_FALSE(CheckNpy(array, ir::DType::kI32, {2, 3}).ok());
  NpyArray half = array;
  for (const char* type : {"u2", "V2"}) {
    half.type = type;
    EXPECT_THAT(CheckNpy(half, ir::DType::kBF16, {2, 3}), IsOk());
    EXPECT_FALSE(CheckNpy(half, ir::DType::kF16, {2, 3}).ok());
  }
  NpyArray byte = array;
  for (const char* type : {"u1", "V1"}) {
    byte.type = type;
    EXPECT_THAT(CheckNpy(byte, ir::DType::kF8E4M3, {2, 3}), IsOk());
    EXPECT_THAT(CheckNpy(byte, ir::DType::kF8E5M2, {2, 3}), IsOk());
    EXPECT_THAT(CheckNpy(byte, ir::DType::kU4, {2, 3}), IsOk());
    EXPECT_FALSE(CheckNpy(byte, ir::DType::kI8, {2, 3}).ok());
  }
  byte.type = "i1";
  EXPECT_THAT(CheckNpy(byte, ir::DType::kI4, {2, 3}), IsOk());
  golden.Add(CheckNpy(array, ir::DType::kF8E4M3, {2, 3}).message());
  byte.type = "b1";
  golden.Add(CheckNpy(byte, ir::DType::kI8, {2, 3}).message());
  byte.type = "V1";
  golden.Add(CheckNpy(byte, ir::DType::kI8, {2, 3}).message());
}

TEST(Npy, ErrorsNameTheCause) {
  GoldenOfTest golden;
  const std::string data(24, 'x');
  const auto with = [&](const char* from, const char* to) {
    return File(1, absl::StrReplaceAll(kDictionary, {{from, to}}), data);
  };
  for (const std::string& file : {
           std::string(),
           std::string("PK\x03\x04"),
           std::string("\x93NUMPY", 6),
           std::string("\x93NUMPY\x01", 7),
           std::string("\x93NUMPY\x01\x00\xff", 9),
           File(3, kDictionary, data),
           std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12),
           File(1, kDictionary, data + "x"),
           File(1, kDictionary, data.substr(1)),
           with("<f4", ">f4"),
           with("<f4", "|O"),
           with("<f4", "<U7"),
           with("<f4", "<f99999999999999999999"),
           with("'<f4'", "[('a', '<f4')]"),
           with("'<f4'", "'<f4"),
           with("False", "True"),
           with("False", "None"),
           with("(2, 3)", "(-2, 3)"),
           with("(2, 3)", "(4294967296, 4294967296, 4)"),
           with("(2, 3)", "(99999999999999999999)"),
           with("(2, 3)", "(2, 3"),
           with("'shape'", "'size'"),
           with("'shape': (2, 3), ", ""),
           with("{", ""),
           with("}", "} {"),
       }) {
    golden.Add(ParseNpy(file).status().ToString());
  }
  std::string many = "1";
  for (int i = 0; i < 40; ++i) many += ", 1";
  golden.Add(ParseNpy(with("2, 3", many.c_str())).status().ToString());
}

TEST(Npy, DamagedAndTruncatedFilesDoNotCrash) {
  const std::string file = File(1, kDictionary, std::string(24, 'x'));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ParseNpy(absl::string_view(file).substr(0, size)).ok()) << size;
  }
  int read = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    Rng rng(seed);
    std::string damaged = file;
    for (uint64_t e = 0; e <= rng.Below(3); ++e) {
      const size_t at = rng.Below(damaged.size());
      if (rng.Below(3) == 0) {
        damaged.erase(at, 1 + rng.Below(4));
      } else {
        damaged[at] = static_cast<char>(rng.Below(256));
      }
      if (damaged.empty()) break;
    }
    const auto array = ParseNpy(damaged);
    if (!array.ok()) continue;
    ++read;
    EXPECT_GE(array->data.data(), damaged.data());
    EXPECT_EQ(array->data.data() + array->data.size(), damaged.data() + damaged.size());
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace hone::client
