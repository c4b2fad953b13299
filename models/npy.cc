#include <kolo/models/data.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/text.h>

namespace kolo::models {
namespace {

constexpr std::string_view kAllTypes = "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 b1";
constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint64_t kMostHeader = 1 << 16;
constexpr std::size_t kMostDimensions = 32;  // as NumPy has

struct Header {
  std::string descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

// Of the header, a dictionary as Python writes it: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4),
// }
class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Header parse() {
    Header header;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && header.descr.empty()) header.descr = type();
      else if (key == "fortran_order" && !header.fortran_order) header.fortran_order = boolean();
      else if (key == "shape" && !header.shape) header.shape = tuple();
      else fail();
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size() || header.descr.empty() || !header.fortran_order || !header.shape) fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const {
    throw DataLossError("{}: its header is not that of a NumPy array: {:?}", path_, text_.substr(0, 200));
  }
  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool peek(char wanted) {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == wanted;
  }
  bool take(char wanted) {
    if (!peek(wanted)) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) fail();
  }
  std::string quoted() {
    const char quote = peek('"') ? '"' : '\'';
    expect(quote);
    const std::size_t begin = at_, end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail();
    at_ = end + 1;
    return std::string(text_.substr(begin, end - begin));
  }
  // A list of fields is a record's.
  std::string type() {
    if (peek('['))
      throw InvalidArgumentError("{}: an array of records; it must be of numbers: {}", path_, kAllTypes);
    return quoted();
  }
  std::string word() {
    skip_spaces();
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  bool boolean() {
    const std::string value = word();
    if (value != "True" && value != "False") fail();
    return value == "True";
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> dims;
    expect('(');
    while (!take(')')) {
      const auto dim = parse_int64(word());
      if (!dim || *dim < 0 || dims.size() == kMostDimensions) fail();
      dims.push_back(*dim);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return dims;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

// How an element lies in the file, and what it becomes.
struct ElementType {
  DType dtype;
  std::size_t bytes;     // in the file
  bool swapped = false;  // the bytes of each stand in the other order
  void (*widen)(const char* from, std::int64_t count, Tensor& to) = nullptr;  // none: as it is
};

template <typename From, typename To>
void widen(const char* from, std::int64_t count, Tensor& to) {
  for (std::int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(From)), sizeof(From));
    to.data<To>()[i] = static_cast<To>(value);  // NOLINT(bugprone-signed-char-misuse): i1 is a number
  }
}

ElementType element_type(const std::string& descr, const std::string& path) {
  static const std::map<std::string_view, ElementType> types = {
      {"f2", {DType::f32, 2, false, widen<Half, float>}},
      {"f4", {DType::f32, 4}},
      {"f8", {DType::f64, 8}},
      {"i1", {DType::i32, 1, false, widen<std::int8_t, std::int32_t>}},
      {"i2", {DType::i32, 2, false, widen<std::int16_t, std::int32_t>}},
      {"i4", {DType::i32, 4}},
      {"i8", {DType::i64, 8}},
      {"u1", {DType::u8, 1}},
      {"u2", {DType::i32, 2, false, widen<std::uint16_t, std::int32_t>}},
      {"u4", {DType::i64, 4, false, widen<std::uint32_t, std::int64_t>}},
      {"b1", {DType::boolean, 1}},
  };
  const auto found = types.find(std::string_view(descr).substr(std::min<std::size_t>(1, descr.size())));
  const char order = descr.empty() ? ' ' : descr.front();
  if (found == types.end() || std::string_view("<>=|").find(order) == std::string_view::npos ||
      (order == '|' && found->second.bytes > 1))
    throw InvalidArgumentError(
        "{}: an array of type {:?}; it must be one of {}, in either order of bytes (numpy: x.astype)", path,
        descr, kAllTypes);
  ElementType type = found->second;
  type.swapped = order == '>' && type.bytes > 1;
  return type;
}

void swap_bytes(char* bytes, std::int64_t count, std::size_t each) {
  for (std::int64_t i = 0; i < count; ++i, bytes += each) std::reverse(bytes, bytes + each);
}

// Row-major, of what lies column by column: the first index runs fastest there.
std::string row_major(const std::string& columns, const std::vector<std::int64_t>& shape, std::size_t each) {
  std::vector<std::size_t> strides;  // in the file
  std::size_t stride = each;
  for (const std::int64_t dim : shape) {
    strides.push_back(stride);
    stride *= static_cast<std::size_t>(dim);
  }
  std::string rows(columns.size(), '\0');
  std::vector<std::int64_t> index(shape.size());
  std::size_t from = 0;
  for (std::size_t to = 0; to < rows.size(); to += each) {
    std::memcpy(rows.data() + to, columns.data() + from, each);
    for (std::size_t d = shape.size(); d-- > 0;) {
      from += strides[d];
      if (++index[d] < shape[d]) break;
      from -= strides[d] * static_cast<std::size_t>(shape[d]);
      index[d] = 0;
    }
  }
  return rows;
}

// Of the file's start: the header, and where the elements begin.
std::pair<Header, std::uint64_t> read_header(InputFile& file, const std::string& name) {
  char start[12] = {};
  if (file.bytes() < 10) throw DataLossError("{}: {} bytes; it is no file of numpy.save", name, file.bytes());
  file.read(0, start, 10);
  const auto version = static_cast<unsigned char>(start[6]);
  if (std::string_view(start, kMagic.size()) != kMagic || version < 1 || version > 3)
    throw DataLossError("{}: it is no file of numpy.save, format 1 to 3", name);
  const std::uint64_t length_bytes = version == 1 ? 2 : 4, begin = 8 + length_bytes;
  if (file.bytes() < begin) throw DataLossError("{}: ends within its header", name);
  file.read(8, start + 8, length_bytes);
  std::uint64_t length = 0;
  for (std::uint64_t i = length_bytes; i > 0; --i)
    length = length << 8 | static_cast<unsigned char>(start[7 + i]);
  if (length > kMostHeader || begin + length > file.bytes())
    throw DataLossError("{}: announces a header of {} bytes; the file holds {}, and a header at most {}",
                        name, length, file.bytes(), kMostHeader);
  std::string text(length, '\0');
  file.read(begin, text.data(), length);
  return {Parser(text, name).parse(), begin + length};
}

}  // namespace

Tensor read_npy(const std::filesystem::path& path) {
  const std::string name = path.string();
  InputFile file(name);
  const auto [header, begin] = read_header(file, name);
  const ElementType type = element_type(header.descr, name);

  std::int64_t bytes = static_cast<std::int64_t>(type.bytes);
  bool overflows = false;
  bool empty = false;
  for (const std::int64_t dim : *header.shape) {
    if (dim == 0) empty = true;
    else overflows |= __builtin_mul_overflow(bytes, dim, &bytes);
  }
  if (empty && !overflows) bytes = 0;
  const std::uint64_t held = file.bytes() - begin;
  if (overflows || static_cast<std::uint64_t>(bytes) != held)
    throw DataLossError("{}: announces {} {}, {} bytes; the file holds {}", name, header.descr,
                        Shape(*header.shape), overflows ? "too many" : std::to_string(bytes), held);
  Tensor array(type.dtype, Shape(*header.shape));
  if (held == 0) return array;
  const bool by_columns = *header.fortran_order && header.shape->size() > 1;
  if (!by_columns && type.widen == nullptr) {
    file.read(begin, array.raw(), held);
    if (type.swapped) swap_bytes(reinterpret_cast<char*>(array.raw()), array.elements(), type.bytes);
  } else {
    std::string elements(held, '\0');
    file.read(begin, elements.data(), held);
    if (by_columns) elements = row_major(elements, *header.shape, type.bytes);
    if (type.swapped) swap_bytes(elements.data(), array.elements(), type.bytes);
    if (type.widen != nullptr) type.widen(elements.data(), array.elements(), array);
    else std::memcpy(array.raw(), elements.data(), held);
  }
  if (type.dtype == DType::boolean)
    for (std::byte& byte : std::span(array.raw(), held)) byte = std::byte{byte != std::byte{0}};
  return array;
}

}  // namespace kolo::models
