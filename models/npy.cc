#include <kolo/models/npy.h>

#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/text.h>

namespace kolo::models {
namespace {

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
      throw InvalidArgumentError("{}: an array of records; it must be of numbers: <f4 <f8 <i4 <i8 |u1",
                                 path_);
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

DType dtype_of(const std::string& descr, const std::string& path) {
  if (descr == "<f4") return DType::f32;
  if (descr == "<f8") return DType::f64;
  if (descr == "<i4") return DType::i32;
  if (descr == "<i8") return DType::i64;
  if (descr == "|u1") return DType::u8;
  throw InvalidArgumentError(
      "{}: an array of type {:?}; it must be one of <f4 <f8 <i4 <i8 |u1 (numpy: x.astype)", path, descr);
}

}  // namespace

Tensor read_npy(const std::filesystem::path& path) {
  const std::string name = path.string();
  InputFile file(name);
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
  const Header header = Parser(text, name).parse();
  const DType dtype = dtype_of(header.descr, name);
  if (*header.fortran_order && header.shape->size() > 1)
    throw InvalidArgumentError("{}: its elements are in Fortran's order; save numpy.ascontiguousarray(x)",
                               name);

  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  bool overflows = false;
  bool empty = false;
  for (const std::int64_t dim : *header.shape) {
    if (dim == 0) empty = true;
    else overflows |= __builtin_mul_overflow(bytes, dim, &bytes);
  }
  if (empty && !overflows) bytes = 0;
  const std::uint64_t held = file.bytes() - begin - length;
  if (overflows || static_cast<std::uint64_t>(bytes) != held)
    throw DataLossError("{}: announces {} {}, {} bytes; the file holds {}", name, dtype, Shape(*header.shape),
                        overflows ? "too many" : std::to_string(bytes), held);
  Tensor array(dtype, Shape(*header.shape));
  if (held > 0) file.read(begin + length, array.raw(), held);
  return array;
}

}  // namespace kolo::models
