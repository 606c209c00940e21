// Checks that the stored seeds are valid. If a message, method or encoding has changed, rewrite
// them with `build/…/bin/fuzz_seeds tests/fuzz/corpus`.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/message.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/file.h"
#include "common/record/proto_convert.h"
#include "gtest/gtest.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/process.pb.h"
#include "hone/v1/tuning.pb.h"
#include "hone/v1/worker.pb.h"
#include "server/job/actor/job_codec.h"
#include "tests/fuzz/handlers_script.h"
#include "tests/status.h"

namespace hone::fuzz {
namespace {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

std::string Seed(const std::string& name) {
  const auto bytes = ReadFile(absl::StrCat("tests/fuzz/corpus/", name));
  EXPECT_THAT(bytes, IsOk());
  return bytes.value_or("");
}

std::set<std::string> SeedsOf(const std::string& target) {
  std::set<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat("tests/fuzz/corpus/", target))) {
    names.insert(entry.path().filename());
  }
  return names;
}

// Returns "" if the bytes are exactly that message, otherwise the reason.
std::string WhyNot(absl::string_view bytes, Message& message) {
  if (!message.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::StrCat("no ", message.GetTypeName());
  }
  const size_t size = message.ByteSizeLong();
  message.DiscardUnknownFields();
  return message.ByteSizeLong() == size
             ? ""
             : absl::StrCat("fields that a ", message.GetTypeName(), " does not have");
}

// Finds a method by its path, e.g. "/hone.v1.TuningService/GetJob".
const MethodDescriptor* Describe(const std::string& path) {
  const size_t slash = path.rfind('/');
  return google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
      absl::StrCat(path.substr(1, slash - 1), ".", path.substr(slash + 1)));
}

TEST(SeedsTest, ScriptMethodsMatchTheServices) {
  std::set<std::string> scripted;
  for (const Method& method : Methods()) {
    const MethodDescriptor* const described = Describe(method.path);
    ASSERT_NE(described, nullptr) << method.path;
    EXPECT_EQ(method.takes_many, described->client_streaming()) << method.path;
    EXPECT_EQ(method.gives_many, described->server_streaming()) << method.path;
    scripted.insert(std::string(described->full_name()));
  }
  for (const auto* file : {v1::Job::descriptor()->file(), v1::Lease::descriptor()->file(),
                           v1::DrainWorkerRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        const std::string name = std::string(file->service(s)->method(m)->full_name());
        EXPECT_TRUE(scripted.contains(name)) << name << " is not fuzzed: see Methods()";
      }
    }
  }
}

TEST(SeedsTest, StoredScriptsAreUpToDate) {
  const std::map<std::string, std::string> written = {{"tuning", TuningScript(false)},
                                                      {"tuning_on_disk", TuningScript(true)},
                                                      {"hostile", HostileScript()}};
  for (const auto& [name, script] : written) {
    EXPECT_TRUE(Seed("handlers/" + name) == script) << name << ": write it again with fuzz_seeds";
  }
  for (const std::string& name : SeedsOf("handlers")) {
    const std::string script = Seed("handlers/" + name);
    int calls = 0, messages = 0, unreadable = 0;
    for (const ScriptedCall& call : ReadScript(script)) {
      ++calls;
      const MethodDescriptor* const method = Describe(call.method->path);
      ASSERT_NE(method, nullptr) << call.method->path;
      for (const std::string& bytes : call.messages) {
        google::protobuf::DynamicMessageFactory factory;
        const std::unique_ptr<Message> message(factory.GetPrototype(method->input_type())->New());
        const std::string why = WhyNot(bytes, *message);
        ++messages;
        if (!why.empty()) ++unreadable;
        EXPECT_TRUE(why.empty() || name == "hostile")
            << name << ", call " << calls << ", " << call.method->path << ": " << why;
      }
    }
    EXPECT_GE(messages, 20) << name;
    EXPECT_LE(unreadable, 1) << name << ": one of the hostile ones is meant to be";
  }
}

template <typename T>
std::string ReadsAs(absl::string_view bytes) {
  T message;
  std::string why = WhyNot(bytes, message);
  if (why.empty() && message.ByteSizeLong() == 0) return "nothing";
  if constexpr (requires { record::FromProto(message); }) {
    if (why.empty()) why = std::string(record::FromProto(message).status().message());
  }
  return why;
}

TEST(SeedsTest, StoredMessagesParse) {
  struct Reader {
    char which;  // the first byte
    std::function<std::string(absl::string_view)> read;
  };
  const std::map<std::string, Reader> readers = {
      {"record/record", {0, ReadsAs<v1::Record>}},
      {"record/candidate", {1, ReadsAs<v1::Candidate>}},
      {"record/result", {2, ReadsAs<v1::MeasureResult>}},
      {"record/environment", {3, ReadsAs<v1::Environment>}},
      {"record/build_request", {4, ReadsAs<v1::BuildRequest>}},
      {"record/build_response", {5, ReadsAs<v1::BuildResponse>}},
      {"record/run_request", {6, ReadsAs<v1::RunRequest>}},
      {"request/create_job", {0, ReadsAs<v1::CreateJobRequest>}},
      {"request/synchronize", {1, ReadsAs<v1::SynchronizeRequest>}}};
  for (const auto& [name, reader] : readers) {
    const std::string bytes = Seed(name);
    ASSERT_FALSE(bytes.empty()) << name;
    EXPECT_EQ(bytes[0], reader.which) << name;
    EXPECT_EQ(reader.read(absl::string_view(bytes).substr(1)), "") << name;
  }
  for (const char* const target : {"record", "request"}) {
    for (const std::string& name : SeedsOf(target)) {
      EXPECT_TRUE(readers.contains(absl::StrCat(target, "/", name))) << "what is " << name << "?";
    }
  }
}

TEST(SeedsTest, StoredRowsDecode) {
  EXPECT_THAT(job::DecodeSpec(Seed("stored_row/spec")), IsOk());
  EXPECT_THAT(job::DecodeSnapshot(Seed("stored_row/snapshot")), IsOk());
  EXPECT_THAT(
      job::DecodePropose({.kind = job::kProposeKind, .payload = Seed("stored_row/propose")}),
      IsOk());
  EXPECT_THAT(
      job::DecodeExternal({.kind = job::kExternalKind, .payload = Seed("stored_row/external")}),
      IsOk());
  EXPECT_THAT(job::DecodeTell({.kind = job::kTellKind, .payload = Seed("stored_row/tell")}),
              IsOk());
}

}  // namespace
}  // namespace hone::fuzz
