#include "tests/fuzz/handlers_mutator.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/tuning.pb.h"
#include "hone/v1/worker.pb.h"
#include "tests/fuzz/handlers_script.h"

namespace hone::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kMostBytes = 1 << 15;  // of a message after a change
constexpr size_t kMostContent =
    (1 << 16) - 8;  // of a call; the script stores the length in two bytes

constexpr double kNumbers[] = {
    0, -1, 1, 2, 7, 64, 1000, 1e-9, 1e9, 1e300, INFINITY, std::numeric_limits<double>::quiet_NaN()};
constexpr int64_t kIntegers[] = {0,  1,    -1,   2,       3,         7,         24,       64,
                                 90, 4096, 1001, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN};

class Mutator {
 public:
  explicit Mutator(Rng& rng) : rng_(rng) {}

  // Collects the texts of every field, for use in other fields.
  void Learn(const Message& message) {
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) {
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
          Learn(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                     : reflection.GetMessage(message, field));
        } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
          words_.push_back(field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                                : reflection.GetString(message, field));
        }
      }
    }
  }

  void Change(Message& message) {
    const auto& descriptor = *message.GetDescriptor();
    const Reflection& reflection = *message.GetReflection();
    if (descriptor.field_count() == 0) return;
    std::vector<const FieldDescriptor*> set;
    reflection.ListFields(message, &set);
    // Usually a field that is set.
    const FieldDescriptor* const field =
        !set.empty() && rng_.Below(4) != 0
            ? set[rng_.Below(set.size())]
            : descriptor.field(static_cast<int>(rng_.Below(descriptor.field_count())));
    if (field->is_repeated()) return ChangeList(message, field);
    if (rng_.Below(8) == 0) return reflection.ClearField(&message, field);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return Change(*reflection.MutableMessage(&message, field));
    }
    Set(message, field, -1);
  }

 private:
  void ChangeList(Message& message, const FieldDescriptor* field) {
    const Reflection& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, field);
    const int at = size == 0 ? 0 : static_cast<int>(rng_.Below(size));
    const bool of_messages = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    switch (size == 0 ? 0 : rng_.Below(4)) {
      case 0:  // adds an element: a changed copy of another message, or a new value
        if (of_messages) {
          Message* const added = reflection.AddMessage(&message, field);
          if (size > 0) added->CopyFrom(reflection.GetRepeatedMessage(message, field, at));
          Change(*added);
        } else {
          Set(message, field, size);
        }
        return;
      case 1:
        reflection.SwapElements(&message, field, at, size - 1);
        return reflection.RemoveLast(&message, field);
      default:
        if (of_messages) {
          Change(*reflection.MutableRepeatedMessage(&message, field, at));
        } else {
          Set(message, field, at);
        }
    }
  }

  // Sets element `at` of a list, or appends one if `at` is its size; -1: the field is not a list.
  void Set(Message& message, const FieldDescriptor* field, int at) {
    const Reflection& r = *message.GetReflection();
    const bool add = at >= 0 && at == r.FieldSize(message, field);
    const int64_t integer = rng_.Below(4) == 0 ? static_cast<int64_t>(rng_.Below(100))
                                               : kIntegers[rng_.Below(std::size(kIntegers))];
    const double number = kNumbers[rng_.Below(std::size(kNumbers))];
    const auto put = [&](auto add_value, auto set_element, auto set_value, auto value) {
      if (add) {
        (r.*add_value)(&message, field, value);
      } else if (at >= 0) {
        (r.*set_element)(&message, field, at, value);
      } else {
        (r.*set_value)(&message, field, value);
      }
    };
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return put(&Reflection::AddInt32, &Reflection::SetRepeatedInt32, &Reflection::SetInt32,
                   static_cast<int32_t>(integer));
      case FieldDescriptor::CPPTYPE_INT64:
        return put(&Reflection::AddInt64, &Reflection::SetRepeatedInt64, &Reflection::SetInt64,
                   integer);
      case FieldDescriptor::CPPTYPE_UINT32:
        return put(&Reflection::AddUInt32, &Reflection::SetRepeatedUInt32, &Reflection::SetUInt32,
                   static_cast<uint32_t>(integer));
      case FieldDescriptor::CPPTYPE_UINT64:
        return put(&Reflection::AddUInt64, &Reflection::SetRepeatedUInt64, &Reflection::SetUInt64,
                   static_cast<uint64_t>(integer));
      case FieldDescriptor::CPPTYPE_ENUM:
        return put(&Reflection::AddEnumValue, &Reflection::SetRepeatedEnumValue,
                   &Reflection::SetEnumValue, static_cast<int>(rng_.Below(12)));
      case FieldDescriptor::CPPTYPE_BOOL:
        return put(&Reflection::AddBool, &Reflection::SetRepeatedBool, &Reflection::SetBool,
                   rng_.Below(2) == 0);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return put(&Reflection::AddDouble, &Reflection::SetRepeatedDouble, &Reflection::SetDouble,
                   number);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return put(&Reflection::AddFloat, &Reflection::SetRepeatedFloat, &Reflection::SetFloat,
                   static_cast<float>(number));
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = Word();
        if (add) return r.AddString(&message, field, text);
        if (at >= 0) return r.SetRepeatedString(&message, field, at, text);
        return r.SetString(&message, field, text);
      }
      default:
        return;
    }
  }

  std::string Word() {
    if (rng_.Below(4) == 0) return absl::StrCat("fuzz-", 1 + rng_.Below(24));  // a lease id
    if (rng_.Below(8) == 0) return absl::StrCat(rng_.Below(4));                // a job id
    std::string word = words_.empty() ? "" : words_[rng_.Below(words_.size())];
    if (!word.empty() && rng_.Below(4) == 0) word[rng_.Below(word.size())] = 'a';
    if (rng_.Below(16) == 0) word += word;
    return word;
  }

  Rng& rng_;
  std::vector<std::string> words_;
};

std::unique_ptr<Message> NewRequest(const ScriptedCall& call) {
  const std::string path = call.method->path;
  const size_t slash = path.rfind('/');
  const auto* const method = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
      absl::StrCat(path.substr(1, slash - 1), ".", path.substr(slash + 1)));
  return std::unique_ptr<Message>(google::protobuf::MessageFactory::generated_factory()
                                      ->GetPrototype(method->input_type())
                                      ->New());
}

}  // namespace

std::string MutateScript(absl::string_view script, Rng& rng) {
  std::vector<ScriptedCall> calls = ReadScript(script);
  if (calls.empty()) return "";
  Mutator mutator(rng);
  for (const ScriptedCall& call : calls) {
    for (const std::string& bytes : call.messages) {
      const std::unique_ptr<Message> message = NewRequest(call);
      if (message->ParseFromString(bytes)) mutator.Learn(*message);
    }
  }
  const int edits = 1 + static_cast<int>(rng.Below(5));
  for (int edit = 0; edit < edits && !calls.empty(); ++edit) {
    const size_t at = rng.Below(calls.size()), to = rng.Below(calls.size() + 1);
    ScriptedCall& call = calls[at];
    switch (rng.Below(12)) {
      case 0:
        if (calls.size() < kMaxScriptedCalls) {
          calls.insert(calls.begin() + static_cast<ptrdiff_t>(to), ScriptedCall(call));
        }
        break;
      case 1:
        calls.erase(calls.begin() + static_cast<ptrdiff_t>(at));
        break;
      case 2:
        std::swap(call, calls[std::min(to, calls.size() - 1)]);
        break;
      case 3:
        call.flags ^= static_cast<uint8_t>(1 << rng.Below(3));
        break;
      default: {
        if (call.messages.empty()) break;
        std::string& bytes = call.messages[rng.Below(call.messages.size())];
        const std::unique_ptr<Message> message = NewRequest(call);
        if (rng.Below(24) == 0 || !message->ParseFromString(bytes)) {
          if (!bytes.empty()) bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Below(256));
          break;
        }
        mutator.Change(*message);
        // A text may now be invalid UTF-8. The message is sent anyway: the server must refuse it.
        std::string changed = message->SerializePartialAsString();
        if (changed.size() < kMostBytes) bytes = std::move(changed);
      }
    }
  }
  ScriptWriter writer(IsOnDisk(script));
  for (ScriptedCall& call : calls) {
    size_t bytes = 0;
    for (const std::string& message : call.messages) bytes += 2 + message.size();
    while (bytes > kMostContent) {
      bytes -= 2 + call.messages.back().size();
      call.messages.pop_back();
    }
    const std::string path = call.method->path;
    writer.Add(path.substr(path.rfind('/') + 1), call.messages, call.flags);
  }
  return writer.bytes();
}

}  // namespace hone::fuzz
