#include <kolo/core/training/checkpoint_index.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <utility>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/error.h>
#include <kolo/core/training/safetensors_internal.h>

namespace kolo {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
// The text ends in `,\n "index_crc32c": "xxxxxxxx"\n}\n`: of fixed length, so that the sum is checked before
// a parser sees anything.
constexpr char kSumField[] = ",\n \"index_crc32c\": \"";
constexpr char kEnding[] = "\"\n}\n";
constexpr std::size_t kSumDigits = 8;
constexpr std::size_t kTailBytes = sizeof kSumField - 1 + kSumDigits + sizeof kEnding - 1;

json to_json(const CheckpointIndex& index) {
  json fields = {{"version", kVersion},
                 {"global_step", nullptr},
                 {"file_bytes", index.file_bytes},
                 {"header_crc32c", crc32c_text(index.header_crc32c)},
                 {"tensors", json::object()},
                 {"random_positions", index.random_positions},
                 {"state", json::object()}};
  if (index.global_step) fields["global_step"] = *index.global_step;
  for (const auto& [name, tensor] : index.tensors)
    fields["tensors"][name] = {{"dtype", kolo::name(tensor.dtype)},
                               {"shape", tensor.shape.dims()},
                               {"crc32c", crc32c_text(tensor.crc32c)}};
  for (const auto& [name, value] : index.state) {
    try {
      fields["state"][name] = detail::parse_bounded_json(value);
    } catch (const json::exception&) {
      throw InvalidArgumentError("the saved state \"{}\" is no JSON value: {}", name, value);
    }
  }
  return fields;
}

std::uint32_t sum_from(const std::string& text) {
  std::uint32_t sum = 0;
  if (text.size() != kSumDigits) throw DataLossError("\"{}\" is no sum", text);
  for (const char digit : text) {
    const bool is_decimal = digit >= '0' && digit <= '9';
    if (!is_decimal && !(digit >= 'a' && digit <= 'f')) throw DataLossError("\"{}\" is no sum", text);
    sum = sum << 4 | static_cast<std::uint32_t>(is_decimal ? digit - '0' : digit - 'a' + 10);
  }
  return sum;
}

CheckpointIndex from_json(const json& fields) {
  if (fields.at("version") != kVersion)
    throw DataLossError("it has version {}; this program reads version {}", fields.at("version").dump(),
                        kVersion);
  CheckpointIndex index;
  if (!fields.at("global_step").is_null()) index.global_step = fields.at("global_step").get<std::int64_t>();
  index.file_bytes = fields.at("file_bytes").get<std::uint64_t>();
  index.header_crc32c = sum_from(fields.at("header_crc32c").get<std::string>());
  for (const auto& [name, tensor] : fields.at("tensors").items())
    index.tensors[name] = {dtype_from_name(tensor.at("dtype").get<std::string>()),
                           Shape(detail::whole_numbers(tensor.at("shape"))),
                           sum_from(tensor.at("crc32c").get<std::string>())};
  index.random_positions = fields.at("random_positions").get<std::map<std::string, std::uint64_t>>();
  for (const auto& [name, value] : fields.at("state").items()) index.state[name] = value.dump();
  return index;
}

}  // namespace

std::string crc32c_text(std::uint32_t sum) { return fmt::format("{:08x}", sum); }

std::string checkpoint_index_text(const CheckpointIndex& index) {
  std::string text = to_json(index).dump(1);
  text.resize(text.size() - 2);  // without the closing "\n}": one field follows
  const std::string sum = crc32c_text(crc32c(text.data(), text.size()));
  return text + kSumField + sum + kEnding;
}

CheckpointIndex parse_checkpoint_index(const std::string& text) {
  if (text.size() < kTailBytes || !text.ends_with(kEnding))
    throw DataLossError("its end is missing or changed");
  const std::size_t body = text.size() - kTailBytes;
  if (text.compare(body, sizeof kSumField - 1, kSumField) != 0)
    throw DataLossError("its end is missing or changed");
  const std::string expected = text.substr(body + sizeof kSumField - 1, kSumDigits);
  const std::string found = crc32c_text(crc32c(text.data(), body));
  if (found != expected) throw DataLossError("its sum is {}, but it says {}", found, expected);
  try {
    return from_json(detail::parse_bounded_json(text));
  } catch (const json::exception& wrong) {
    throw DataLossError("it is no index of a checkpoint: {}", wrong.what());
  } catch (const InvalidArgumentError& wrong) {
    throw DataLossError("it is no index of a checkpoint: {}", wrong.what());
  }
}

std::string checkpoint_summary_json(const CheckpointIndex& index) {
  json fields = to_json(index);
  fields.erase("version");
  return fields.dump();
}

}  // namespace kolo
