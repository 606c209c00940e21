// Errors are for people: they have no names of messages, fields or methods. Every field of every
// request gets wrong values, one at a time.

#include <algorithm>
#include <limits>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/reflection.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "hone/v1/admin.pb.h"
#include "tests/server/service/service_harness.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class ErrorWordsTest : public ::testing::Test, protected ServiceHarness {
 protected:
  void SetUp() override {
    ASSERT_THAT(Start(), IsOk());
    for (const char* name : {"TuningService", "AdminService", "WorkerService"}) {
      const auto* service = v1::DrainWorkerRequest::descriptor()->file()->pool()->FindServiceByName(
          absl::StrCat("hone.v1.", name));
      ASSERT_NE(service, nullptr) << name;
      for (int i = 0; i < service->method_count(); ++i) methods_.push_back(service->method(i));
    }
  }

  // A request whose usual fields are set, so that others are checked, too.
  static std::unique_ptr<Message> Plain(const google::protobuf::Descriptor* type) {
    if (type == v1::CreateJobRequest::descriptor()) {
      auto job = std::make_unique<v1::CreateJobRequest>(Request(/*trials=*/4));
      job->set_validate_only(true);
      return job;
    }
    std::unique_ptr<Message> message(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
    for (const char* name : {"id", "workload_digest", "target", "worker_id", "epoch"}) {
      const FieldDescriptor* field = type->FindFieldByName(name);
      if (field == nullptr || field->type() != FieldDescriptor::TYPE_STRING) continue;
      message->GetReflection()->SetString(message.get(), field, "x");
    }
    return message;
  }

  std::string ErrorOf(const google::protobuf::MethodDescriptor& method, const Message& request) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
    const grpc::Slice slice(request.SerializeAsString());
    const grpc::ByteBuffer bytes(&slice, 1);
    grpc::ByteBuffer answer;
    grpc::Status status;
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(channel);
    auto call = stub.PrepareUnaryCall(
        &context, absl::StrCat("/", std::string(method.service()->full_name()), "/", method.name()),
        bytes, &queue);
    call->StartCall();
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status.error_message();
  }

  void Expect(const google::protobuf::MethodDescriptor& method, const Message& request) {
    std::string error = ErrorOf(method, request);
    // Names that may be given on the command line follow.
    error =
        error.substr(0, std::min(error.find("; there are: "), error.find("; the outcomes are ")));
    const std::string what = absl::StrCat(method.name(), ": ", error);
    EXPECT_FALSE(std::regex_search(error, std::regex("[a-z]_[a-z]"))) << what;
    EXPECT_EQ(error.find("hone.v1"), std::string::npos) << what;
    for (const auto* each : methods_) {
      EXPECT_EQ(error.find(each->name()), std::string::npos) << what;
    }
    errors_ += error.empty() ? 0 : 1;
  }

  // Sets wrong values in `part` of the request, and in its parts.
  void Walk(const google::protobuf::MethodDescriptor& method, const Message& request, Message* part,
            int depth) {
    const Reflection& reflection = *part->GetReflection();
    for (int i = 0; i < part->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = part->GetDescriptor()->field(i);
      const std::unique_ptr<Message> before(part->New());
      before->CopyFrom(*part);
      const auto with = [&](const auto& set) {
        set();
        Expect(method, request);
        part->CopyFrom(*before);
      };
      const bool list = field->is_repeated();
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_STRING:
          for (const std::string& text : {std::string(), std::string("?nonsense?"),
                                          std::string("\x01"), std::string(9000, 'x')}) {
            with([&] {
              list ? reflection.AddString(part, field, text)
                   : reflection.SetString(part, field, text);
            });
          }
          break;
        case FieldDescriptor::CPPTYPE_INT32:
          with([&] {
            list ? reflection.AddInt32(part, field, -1) : reflection.SetInt32(part, field, -1);
          });
          break;
        case FieldDescriptor::CPPTYPE_INT64:
          with([&] {
            list ? reflection.AddInt64(part, field, -1) : reflection.SetInt64(part, field, -1);
          });
          break;
        case FieldDescriptor::CPPTYPE_DOUBLE:
          for (const double value : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
            with([&] {
              list ? reflection.AddDouble(part, field, value)
                   : reflection.SetDouble(part, field, value);
            });
          }
          break;
        case FieldDescriptor::CPPTYPE_ENUM:
          with([&] {
            list ? reflection.AddEnumValue(part, field, 99)
                 : reflection.SetEnumValue(part, field, 99);
          });
          break;
        case FieldDescriptor::CPPTYPE_MESSAGE:
          if (depth > 0 && !field->is_map()) {
            Message* inner =
                list ? reflection.AddMessage(part, field) : reflection.MutableMessage(part, field);
            Expect(method, request);
            Walk(method, request, inner, depth - 1);
            part->CopyFrom(*before);
          }
          break;
        default:
          break;
      }
    }
  }

  std::vector<const google::protobuf::MethodDescriptor*> methods_;
  int errors_ = 0;
};

TEST_F(ErrorWordsTest, ErrorsHaveNoNamesOfTheProtocol) {
  for (const auto* method : methods_) {
    const std::unique_ptr<Message> request = Plain(method->input_type());
    Walk(*method, *request, request.get(), /*depth=*/2);
  }
  EXPECT_GT(errors_, 100) << "most of the values are refused";
}

}  // namespace
}  // namespace hone::service
