#include <kolo/core/training/safetensors.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/training/safetensors_internal.h>

namespace kolo::detail {
namespace {

constexpr int kMaxDepth = 32;
constexpr int kLongestList = 64;  // dimensions
// {"dtype":"U8","shape":[],"data_offsets":[0,1]} has three in 46 bytes.
constexpr std::size_t kFewOpened = 1000, kBytesOfOne = 12;

}  // namespace

nlohmann::json parse_bounded_json(const std::string& text, bool of_tensors) {
  // Not by the parser's callback, which takes time by the square of an object's members.
  int depth = 0, values = 0;  // values: of the innermost list so far
  std::array<bool, kMaxDepth + 1> is_list{};
  std::size_t opened = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    else if (c == '"') in_string = !in_string;
    else if (in_string) continue;
    else if (c == '{' || c == '[') {
      values = 0, ++opened;
      if (++depth > kMaxDepth) throw DataLossError("its JSON is nested deeper than {} levels", kMaxDepth);
      is_list[static_cast<std::size_t>(depth)] = c == '[';
    } else if (c == '}' || c == ']') depth = std::max(depth - 1, 0);
    else if (c == ',' && of_tensors && is_list[static_cast<std::size_t>(depth)] && ++values >= kLongestList)
      throw DataLossError("a list of the header has more than {} values", kLongestList);
  }
  if (of_tensors && opened > kFewOpened + text.size() / kBytesOfOne)
    throw DataLossError("{} lists and objects in {} bytes are not those of tensors", opened, text.size());
  return nlohmann::json::parse(text);
}

std::vector<std::int64_t> whole_numbers(const nlohmann::json& list) {
  std::vector<std::int64_t> numbers;
  if (!list.is_array()) throw DataLossError("a shape or a pair of offsets is no list");
  for (const nlohmann::json& number : list) {
    // What exceeds 63 bits comes out negative.
    if (!number.is_number_integer() || number.get<std::int64_t>() < 0)
      throw DataLossError("{} is neither a dimension nor an offset", json_text(number));
    numbers.push_back(number.get<std::int64_t>());
  }
  return numbers;
}

std::optional<std::uint64_t> bytes_of(DType dtype, const std::vector<std::int64_t>& dims) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  for (const std::int64_t dim : dims)
    if (__builtin_mul_overflow(bytes, dim, &bytes)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace kolo::detail

namespace kolo {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr char kMetadata[] = "__metadata__";

constexpr std::array<std::pair<DType, const char*>, 9> kTypeNames = {{{DType::f32, "F32"},
                                                                      {DType::f64, "F64"},
                                                                      {DType::i32, "I32"},
                                                                      {DType::i64, "I64"},
                                                                      {DType::boolean, "BOOL"},
                                                                      {DType::u8, "U8"},
                                                                      {DType::i8, "I8"},
                                                                      {DType::f16, "F16"},
                                                                      {DType::bf16, "BF16"}}};

const char* file_name_of(DType dtype, const std::string& tensor) {
  for (const auto& [type, text] : kTypeNames)
    if (type == dtype) return text;
  throw InvalidArgumentError("tensor \"{}\" has type {}, which a safetensors file cannot hold", tensor,
                             dtype);
}

// Little-endian whatever the machine, as the format says.
std::array<unsigned char, kLengthBytes> length_bytes(std::uint64_t length) {
  std::array<unsigned char, kLengthBytes> bytes;
  for (std::size_t i = 0; i < kLengthBytes; ++i) bytes[i] = static_cast<unsigned char>(length >> (8 * i));
  return bytes;
}

std::uint64_t length_from(const std::array<unsigned char, kLengthBytes>& bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::uint64_t{bytes[i]} << (8 * i);
  return length;
}

std::string header_text(const std::map<std::string, SafetensorsEntry>& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    if (name == kMetadata)
      throw InvalidArgumentError("a tensor cannot be named \"{}\" in a safetensors file", name);
    const char* const dtype = file_name_of(tensor.dtype, name);
    const std::uint64_t end =
        offset + static_cast<std::uint64_t>(tensor.shape.elements()) * size_of(tensor.dtype);
    header[name] = {{"dtype", dtype}, {"shape", tensor.shape.dims()}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = json_text(header);
  // Padded as the reference writer does, so that the data is aligned for those who map the file.
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  return text;
}

// A thread beside the training may update a variable meanwhile: what is summed is what is written.
std::uint32_t write_elements(DurableFile& file, const Tensor& tensor) {
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  std::vector<std::byte> copy(std::min(kChunk, tensor.bytes()));
  const auto* const elements = static_cast<const std::byte*>(tensor.raw());
  Crc32c sum;
  for (std::size_t at = 0; at < tensor.bytes(); at += kChunk) {
    const std::size_t bytes = std::min(kChunk, tensor.bytes() - at);
    std::memcpy(copy.data(), elements + at, bytes);
    sum.add(copy.data(), bytes);
    file.write(copy.data(), bytes);
  }
  return sum.value();
}

}  // namespace

SafetensorsSums write_safetensors(DurableFile& file, const std::map<std::string, SafetensorsEntry>& tensors,
                                  const std::function<Tensor(const std::string&)>& value) {
  const std::string text = header_text(tensors);
  const auto length = length_bytes(text.size());
  Crc32c header_sum;
  header_sum.add(length.data(), length.size());
  header_sum.add(text.data(), text.size());
  file.write(length.data(), length.size());
  file.write(text);

  SafetensorsSums sums{
      .file_bytes = length.size() + text.size(), .header = header_sum.value(), .tensors = {}};
  for (const auto& [name, entry] : tensors) {
    const Tensor tensor = value(name);
    sums.tensors[name] = write_elements(file, tensor);
    sums.file_bytes += tensor.bytes();
  }
  return sums;
}

SafetensorsSums write_safetensors(DurableFile& file, const std::map<std::string, Tensor>& tensors) {
  std::map<std::string, SafetensorsEntry> entries;
  for (const auto& [name, tensor] : tensors)
    entries[name] = {.dtype = tensor.dtype(), .shape = tensor.shape()};
  return write_safetensors(file, entries, [&](const std::string& name) { return tensors.at(name); });
}

SafetensorsReader::SafetensorsReader(const std::string& path, std::string shown_as)
    : shown_as_(std::move(shown_as)) {
  if (shown_as_.empty()) shown_as_ = path;
  file_ = std::make_unique<InputFile>(path, shown_as_);
  file_bytes_ = file_->bytes();
  if (file_bytes_ < kLengthBytes)
    throw DataLossError("{}: {} bytes, shorter than the header's length field", shown_as_, file_bytes_);
  std::array<unsigned char, kLengthBytes> length;
  file_->read(0, length.data(), length.size());
  const std::uint64_t header_bytes = length_from(length);
  if (header_bytes > file_bytes_ - kLengthBytes || header_bytes > kMaxHeaderBytes)
    throw DataLossError("{}: the header's length {} does not fit a file of {} bytes", shown_as_, header_bytes,
                        file_bytes_);
  std::string text(header_bytes, '\0');
  file_->read(kLengthBytes, text.data(), text.size());
  data_begin_ = kLengthBytes + header_bytes;
  Crc32c sum;
  sum.add(length.data(), length.size());
  sum.add(text.data(), text.size());
  header_crc32c_ = sum.value();
  parse_header(text);
  check_cover();
}

SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&& other) noexcept = default;
SafetensorsReader& SafetensorsReader::operator=(SafetensorsReader&& other) noexcept = default;

void SafetensorsReader::parse_header(const std::string& text) {
  try {
    const nlohmann::json header = detail::parse_bounded_json(text, true);
    if (!header.is_object()) throw DataLossError("the header is not a JSON object");
    for (const auto& [name, fields] : header.items()) {
      if (name == kMetadata) continue;
      const auto type_name = fields.at("dtype").get<std::string>();
      const auto* type = std::find_if(kTypeNames.begin(), kTypeNames.end(),
                                      [&](const auto& known) { return type_name == known.second; });
      const bool known = type != kTypeNames.end();
      const auto offsets = detail::whole_numbers(fields.at("data_offsets"));
      const std::uint64_t data_bytes = file_bytes_ - data_begin_;
      if (offsets.size() != 2 || offsets[0] > offsets[1] ||
          static_cast<std::uint64_t>(offsets[1]) > data_bytes)
        throw DataLossError("the offsets of tensor \"{}\" do not lie in the file", name);
      const auto dims = detail::whole_numbers(fields.at("shape"));
      const auto bytes = detail::bytes_of(known ? type->first : DType::u8, dims);
      if (!bytes || (known && *bytes != static_cast<std::uint64_t>(offsets[1] - offsets[0])))
        throw DataLossError("the offsets of tensor \"{}\" do not fit its type and shape", name);
      entries_[name] = {known ? type->first : DType::u8, Shape(dims), static_cast<std::uint64_t>(offsets[0]),
                        static_cast<std::uint64_t>(offsets[1]), known ? "" : type_name};
    }
  } catch (const nlohmann::json::exception&) {
    throw DataLossError("{}: the header is not that of a safetensors file", shown_as_);
  } catch (const DataLossError& wrong) {
    throw DataLossError("{}: {}", shown_as_, wrong.what());
  }
}

void SafetensorsReader::check_cover() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
  for (const auto& [name, entry] : entries_) pieces.emplace_back(entry.begin, entry.end);
  std::sort(pieces.begin(), pieces.end());
  std::uint64_t covered = 0;
  for (const auto& [begin, end] : pieces) {
    if (begin != covered)
      throw DataLossError("{}: the tensors leave a gap or overlap at byte {} of the data", shown_as_, begin);
    covered = end;
  }
  if (covered != file_bytes_ - data_begin_)
    throw DataLossError("{}: {} bytes of data, but the tensors take {}", shown_as_, file_bytes_ - data_begin_,
                        covered);
}

const SafetensorsEntry& SafetensorsReader::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw NotFoundError("{}: no tensor \"{}\"", shown_as_, name);
  return found->second;
}

const SafetensorsEntry& SafetensorsReader::known_entry(const std::string& name) const {
  const SafetensorsEntry& found = entry(name);
  if (!found.unknown_type.empty())
    throw UnimplementedError("{}: tensor \"{}\" has the type {}, which kolo has not", shown_as_, name,
                             found.unknown_type);
  return found;
}

Tensor SafetensorsReader::read(const std::string& name) {
  const SafetensorsEntry& wanted = known_entry(name);
  Tensor tensor(wanted.dtype, wanted.shape);
  read(name, tensor);
  return tensor;
}

std::uint32_t SafetensorsReader::read(const std::string& name, const Tensor& destination) {
  const SafetensorsEntry& wanted = known_entry(name);
  if (destination.dtype() != wanted.dtype || destination.bytes() != wanted.end - wanted.begin)
    throw InvalidArgumentError("{}: tensor \"{}\" is {} {}; it cannot be read into {} {}", shown_as_, name,
                               wanted.dtype, wanted.shape, destination.dtype(), destination.shape());
  file_->read(data_begin_ + wanted.begin, destination.raw(), destination.bytes());
  return kolo::crc32c(destination.raw(), destination.bytes());
}

std::uint32_t SafetensorsReader::crc32c(const std::string& name) {
  const SafetensorsEntry& wanted = entry(name);
  std::vector<char> piece(std::min<std::uint64_t>(kPieceBytes, wanted.end - wanted.begin));
  Crc32c sum;
  for (std::uint64_t offset = wanted.begin; offset < wanted.end; offset += piece.size()) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), wanted.end - offset));
    file_->read(data_begin_ + offset, piece.data(), count);
    sum.add(piece.data(), count);
  }
  return sum.value();
}

}  // namespace kolo
