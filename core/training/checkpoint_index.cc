#include <kolo/core/training/checkpoint_files.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <utility>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/training/safetensors_internal.h>

namespace kolo {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr int kShardedVersion = 2;
constexpr std::size_t kMostShards = 100'000;  // their file names have five digits
// The text ends in `,\n "index_crc32c": "xxxxxxxx"\n}\n`: of fixed length, so that the sum is checked before
// a parser sees anything.
constexpr char kSumField[] = ",\n \"index_crc32c\": \"";
constexpr char kEnding[] = "\"\n}\n";
constexpr std::size_t kSumDigits = 8;
constexpr std::size_t kTailBytes = sizeof kSumField - 1 + kSumDigits + sizeof kEnding - 1;

json to_json(const CheckpointIndex::TensorEntry& tensor, bool is_sharded) {
  json fields = {{"dtype", kolo::name(tensor.dtype)}, {"shape", tensor.shape.dims()}};
  if (!is_sharded) fields["crc32c"] = crc32c_text(tensor.crc32c);
  for (const auto& slice : tensor.slices)
    fields["slices"].push_back({{"shard", slice.shard},
                                {"name", slice.name},
                                {"shape", slice.shape.dims()},
                                {"axis", slice.axis},
                                {"first", slice.first},
                                {"crc32c", crc32c_text(slice.crc32c)}});
  return fields;
}

json to_json(const CheckpointIndex& index) {
  const bool is_sharded = !index.shards.empty();
  json fields = {{"version", is_sharded ? kShardedVersion : kVersion},
                 {"global_step", nullptr},
                 {"tensors", json::object()},
                 {"random_positions", index.random_positions},
                 {"state", json::object()}};
  if (index.global_step) fields["global_step"] = *index.global_step;
  for (const auto& shard : index.shards)
    fields["shards"].push_back(
        {{"file_bytes", shard.file_bytes}, {"header_crc32c", crc32c_text(shard.header_crc32c)}});
  if (!is_sharded) {
    fields["file_bytes"] = index.file_bytes;
    fields["header_crc32c"] = crc32c_text(index.header_crc32c);
  }
  for (const auto& [name, tensor] : index.tensors) fields["tensors"][name] = to_json(tensor, is_sharded);
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

CheckpointIndex::Slice slice_from(const json& fields) {
  return {.shard = fields.at("shard").get<int>(),
          .name = fields.at("name").get<std::string>(),
          .shape = Shape(detail::whole_numbers(fields.at("shape"))),
          .axis = fields.at("axis").get<int>(),
          .first = fields.at("first").get<std::int64_t>(),
          .crc32c = sum_from(fields.at("crc32c").get<std::string>())};
}

// One after the other along one axis, to the end of it.
void check_slices(const std::string& name, const CheckpointIndex::TensorEntry& tensor, std::size_t shards) {
  std::int64_t next = 0;
  bool fits = !tensor.slices.empty();
  for (const CheckpointIndex::Slice& slice : tensor.slices) {
    const bool is_scalar = tensor.shape.rank() == 0;
    fits = fits && slice.shard >= 0 && static_cast<std::size_t>(slice.shard) < shards &&
           slice.first == next && slice.axis == tensor.slices.front().axis &&
           slice.shape.rank() == tensor.shape.rank() &&
           (is_scalar ? slice.axis == 0 : slice.axis >= 0 && slice.axis < tensor.shape.rank());
    for (int i = 0; fits && i < tensor.shape.rank(); ++i)
      fits = i == slice.axis || slice.shape.dim(i) == tensor.shape.dim(i);
    if (fits) next += is_scalar ? 1 : slice.shape.dim(slice.axis);
  }
  const std::int64_t end = !fits || tensor.shape.rank() == 0 ? 1 : tensor.shape.dim(tensor.slices[0].axis);
  if (!fits || next != end) throw DataLossError("the slices of \"{}\" do not make it up", name);
}

CheckpointIndex from_json(const json& fields) {
  const json& version = fields.at("version");
  if (version != kVersion && version != kShardedVersion)
    throw DataLossError("it has version {}; this program reads versions {} and {}", json_text(version),
                        kVersion, kShardedVersion);
  const bool is_sharded = version == kShardedVersion;
  CheckpointIndex index;
  if (!fields.at("global_step").is_null()) index.global_step = fields.at("global_step").get<std::int64_t>();
  if (is_sharded) {
    for (const json& shard : fields.at("shards"))
      index.shards.push_back({shard.at("file_bytes").get<std::uint64_t>(),
                              sum_from(shard.at("header_crc32c").get<std::string>())});
    if (index.shards.empty() || index.shards.size() > kMostShards)
      throw DataLossError("it lists {} files", index.shards.size());
  } else {
    index.file_bytes = fields.at("file_bytes").get<std::uint64_t>();
    index.header_crc32c = sum_from(fields.at("header_crc32c").get<std::string>());
  }
  for (const auto& [name, tensor] : fields.at("tensors").items()) {
    CheckpointIndex::TensorEntry& entry = index.tensors[name];
    entry.dtype = dtype_from_name(tensor.at("dtype").get<std::string>());
    entry.shape = Shape(detail::whole_numbers(tensor.at("shape")));
    if (!is_sharded) {
      entry.crc32c = sum_from(tensor.at("crc32c").get<std::string>());
      continue;
    }
    for (const json& slice : tensor.at("slices")) entry.slices.push_back(slice_from(slice));
    check_slices(name, entry, index.shards.size());
  }
  index.random_positions = fields.at("random_positions").get<std::map<std::string, std::uint64_t>>();
  for (const auto& [name, value] : fields.at("state").items()) index.state[name] = json_text(value);
  return index;
}

}  // namespace

std::string crc32c_text(std::uint32_t sum) { return fmt::format("{:08x}", sum); }

std::string checkpoint_index_text(const CheckpointIndex& index) {
  std::string text = json_text(to_json(index), 1);
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
  return json_text(fields);
}

}  // namespace kolo
