#include "common/rpc/address.h"

#include <string>

#include "common/rpc/security.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::rpc {
namespace {

TEST(AddressTest, EveryFormRoundTrips) {
  for (const char* text : {"unix:/run/hone.sock", "localhost:7070", "127.0.0.1:0", "[::1]:7070",
                           "hone.internal:65535"}) {
    absl::StatusOr<Address> address = Address::Parse(text);
    ASSERT_THAT(address, IsOk()) << text;
    EXPECT_EQ(address->ToText(), text);
  }
  EXPECT_EQ(Address::Parse("unix:///run/x")->path, "/run/x");
}

TEST(AddressTest, RejectsAndShowsMalformedAddresses) {
  const std::string long_path = "unix:/" + std::string(200, 'a');
  for (const std::string& text :
       {std::string(), std::string("unix:"), std::string("localhost"), std::string(":70"),
        std::string("h:"), std::string("h:65536"), std::string("h:-1"), std::string("h:port"),
        std::string("::1:70"), std::string("a b:7"), long_path}) {
    absl::StatusOr<Address> address = Address::Parse(text);
    EXPECT_THAT(address, StatusIs(absl::StatusCode::kInvalidArgument)) << text;
    EXPECT_NE(std::string(address.status().message()).find(text), std::string::npos);
  }
}

TEST(AddressTest, AListHasOneKind) {
  const auto list = ParseAddresses("a:7070, b:7071,[::1]:7072");
  ASSERT_THAT(list, IsOk());
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ((*list)[1], (Address{.host = "b", .port = 7071}));
  EXPECT_EQ(ParseAddresses("unix:/a,unix:/b")->back().path, "/b");
  for (const char* text : {"", "a:1,", ",a:1", "a:1,unix:/b", "unix:/b,a:1", "a:1,b"}) {
    EXPECT_THAT(ParseAddresses(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(AddressTest, UrlErrorSuggestsAnAddress) {
  for (const char* text : {"http://h:70", "https://h:70/", "http://h:70/x/y"}) {
    const absl::Status status = Address::Parse(text).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_NE(status.message().find("is a URL; write h:70, without http"), std::string::npos)
        << status;
  }
  EXPECT_NE(Address::Parse("http://h").status().message().find("write h:PORT"), std::string::npos);
}

TEST(AddressTest, RemoteAddressesNeedInsecure) {
  for (const char* text : {"unix:/a", "localhost:1", "127.0.0.1:1", "127.3.2.1:1", "[::1]:1"}) {
    EXPECT_THAT(CheckAllowed(*Address::Parse(text), false, false), IsOk()) << text;
  }
  for (const char* text : {"0.0.0.0:1", "10.0.0.1:1", "[::]:1", "example.org:1", "128.0.0.1:1",
                           "localhost.evil.org:1", "127.0.0.1.evil.org:1"}) {
    EXPECT_THAT(CheckAllowed(*Address::Parse(text), false, false),
                StatusIs(absl::StatusCode::kPermissionDenied))
        << text;
    EXPECT_THAT(CheckAllowed(*Address::Parse(text), false, true), IsOk()) << text;
    EXPECT_THAT(CheckAllowed(*Address::Parse(text), true, false), IsOk()) << text;
  }
}

}  // namespace
}  // namespace hone::rpc
