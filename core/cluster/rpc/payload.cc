#include <kolo/core/cluster/rpc/payload.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/graph_def.h>

#include <kolo/core/cluster/rpc/messages_internal.h>

static_assert(std::endian::native == std::endian::little, "elements cross as they lie in memory");

namespace kolo::detail {
namespace {

using kolo::cluster::PayloadHeader;

constexpr std::uint32_t kLargestHeader = 8192;  // 254 dimensions of 10 bytes each, and the rest
constexpr std::uint64_t kLengthBytes = 8;

void check_limit(const char* limit, std::uint64_t found, std::int64_t allowed) {
  if (allowed < 0 || found > static_cast<std::uint64_t>(allowed))
    throw ResourceExhaustedError("{} is limited to {}; {} were announced", limit, allowed, found);
}

Shape checked_shape(const PayloadHeader& header) {
  if (header.dims_size() > kMaxGraphDefRank)
    throw InvalidArgumentError("a tensor of {} dimensions came; {} are allowed", header.dims_size(),
                               kMaxGraphDefRank);
  std::int64_t elements = 1;
  bool empty = false;
  for (const std::int64_t dim : header.dims()) {
    if (dim < 0) throw InvalidArgumentError("a tensor with a dimension of {} came", dim);
    if (dim == 0) empty = true;
    else if (__builtin_mul_overflow(elements, dim, &elements))
      throw InvalidArgumentError("a tensor came whose elements are more than 2^63");
  }
  if (empty) elements = 0;
  return Shape(std::vector<std::int64_t>(header.dims().begin(), header.dims().end()));
}

}  // namespace

// The rest of one message.
class PayloadReader::Pieces {
 public:
  explicit Pieces(std::span<const std::string_view> pieces) : pieces_(pieces) {
    for (const auto piece : pieces) left_ += piece.size();
  }
  std::uint64_t left() const { return left_; }
  /// Hands the next `bytes`, which must be there, on as they lie.
  template <typename Sink>
  void next(std::uint64_t bytes, const Sink& sink) {
    left_ -= bytes;
    while (bytes > 0) {
      const auto piece = pieces_.front().substr(offset_);
      const auto taken =
          piece.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(bytes, piece.size())));
      sink(taken);
      bytes -= taken.size();
      offset_ += taken.size();
      if (offset_ < pieces_.front().size()) continue;
      pieces_ = pieces_.subspan(1);
      offset_ = 0;
    }
  }

 private:
  std::span<const std::string_view> pieces_;
  std::size_t offset_ = 0;
  std::uint64_t left_ = 0;
};

void PayloadReader::read(std::span<const std::string_view> message) {
  Pieces pieces(message);
  if (!open_) begin(pieces);
  else if (pieces.left() == 0) throw InvalidArgumentError("an empty chunk came");
  if (open_) take(pieces);
  if (pieces.left() != 0) throw InvalidArgumentError("{} bytes came behind a payload", pieces.left());
}

void PayloadReader::begin(Pieces& pieces) {
  std::uint32_t header_bytes = 0;
  if (pieces.left() < sizeof(header_bytes)) throw InvalidArgumentError("a payload without a header came");
  char* size = reinterpret_cast<char*>(&header_bytes);
  pieces.next(sizeof(header_bytes), [&](std::string_view piece) {
    std::memcpy(size, piece.data(), piece.size());
    size += piece.size();
  });
  if (header_bytes > kLargestHeader || header_bytes > pieces.left())
    throw InvalidArgumentError("a payload header of {} bytes came", header_bytes);
  std::string bytes;
  pieces.next(header_bytes, [&](std::string_view piece) { bytes += piece; });
  PayloadHeader header;
  parse_message(header, bytes);

  bytes_ = header.bytes();
  taken_ = 0;
  text_.clear();
  tensor_ = Tensor();
  switch (header.kind()) {
    case PayloadHeader::GRAPH:
      kind_ = PayloadKind::graph;
      check_limit("a graph's bytes", bytes_, limits_.graph_bytes);
      check_limit("a graph's nodes", header.nodes(), limits_.graph_nodes);
      break;
    case PayloadHeader::METADATA:
      kind_ = PayloadKind::metadata;
      check_limit("metadata's bytes", bytes_, limits_.graph_bytes);
      break;
    case PayloadHeader::TENSOR:
      kind_ = PayloadKind::tensor;
      key_ = header.key();
      if (!header.absent() && !header.dead()) return begin_tensor(header);
      if (bytes_ != 0) throw InvalidArgumentError("a value that there is not came with {} bytes", bytes_);
      return target_.on_tensor(key_, Tensor(), header.dead(), header.absent());
    default: throw InvalidArgumentError("a payload of kind {} came", static_cast<int>(header.kind()));
  }
  open_ = true;
}

void PayloadReader::begin_tensor(const PayloadHeader& header) {
  if (header.dtype() > static_cast<std::uint32_t>(DType::string))
    throw InvalidArgumentError("a tensor of type {} came", header.dtype());
  dtype_ = static_cast<DType>(header.dtype());
  shape_ = checked_shape(header);
  const auto elements = static_cast<std::uint64_t>(shape_.elements());
  std::uint64_t expected = 0;
  if (__builtin_mul_overflow(elements, dtype_ == DType::string ? kLengthBytes : size_of(dtype_), &expected))
    throw InvalidArgumentError("a tensor came whose bytes are more than 2^64");
  if (dtype_ == DType::string) {
    if (bytes_ < expected) throw InvalidArgumentError("{} strings came in {} bytes", elements, bytes_);
    std::uint64_t memory = 0;
    if (__builtin_mul_overflow(elements, sizeof(std::string), &memory) ||
        __builtin_add_overflow(memory, bytes_, &memory))
      memory = std::numeric_limits<std::uint64_t>::max();
    check_limit("a tensor's memory in bytes", memory, limits_.tensor_bytes);
    keep(memory);
  } else {
    if (bytes_ != expected)
      throw InvalidArgumentError("a tensor {} {} came with {} bytes instead of {}", tf_name(dtype_), shape_,
                                 bytes_, expected);
    check_limit("a tensor's bytes", bytes_, limits_.tensor_bytes);
    keep(bytes_);
    tensor_ = target_.memory_for(key_, dtype_, shape_);
    if (tensor_.dtype() != dtype_ || tensor_.shape() != shape_)
      throw InternalError("the memory for a tensor {} {} is another one's", tf_name(dtype_), shape_);
  }
  open_ = true;
}

// Of a tensor within the limit, so that the sum cannot overflow.
void PayloadReader::keep(std::uint64_t bytes) {
  if (tensors_ != Tensors::kept) return;
  kept_bytes_ += bytes;
  if (kept_bytes_ > static_cast<std::uint64_t>(limits_.tensor_bytes))
    throw ResourceExhaustedError("the tensors of a call are limited to {} bytes; {} were announced",
                                 limits_.tensor_bytes, kept_bytes_);
}

void PayloadReader::take(Pieces& pieces) {
  const std::uint64_t now = pieces.left();
  if (now > bytes_ - taken_)
    throw InvalidArgumentError("{} bytes came for a payload that lacks {}", now, bytes_ - taken_);
  pieces.next(now, [&](std::string_view piece) {
    if (tensor_) std::memcpy(tensor_.raw() + taken_, piece.data(), piece.size());
    else text_ += piece;
    taken_ += piece.size();
  });
  if (taken_ == bytes_) complete();
}

void PayloadReader::complete() {
  open_ = false;
  if (kind_ != PayloadKind::tensor) return target_.on_bytes(kind_, std::move(text_));
  if (dtype_ == DType::string) {
    tensor_ = target_.memory_for(key_, dtype_, shape_);
    decode_strings(text_, tensor_.span<std::string>());
    text_.clear();
  } else if (dtype_ == DType::boolean) {
    // A byte other than 0 and 1 is no bool, and compilers know it.
    const auto* bytes = reinterpret_cast<const unsigned char*>(tensor_.raw());
    if (std::any_of(bytes, bytes + bytes_, [](unsigned char byte) { return byte > 1; }))
      throw InvalidArgumentError("a boolean came that is neither 0 nor 1");
  }
  target_.on_tensor(key_, std::exchange(tensor_, Tensor()), false, false);
}

std::string encode_strings(const Tensor& value) {
  const auto strings = value.span<std::string>();
  std::uint64_t bytes = strings.size() * kLengthBytes;
  for (const auto& text : strings) bytes += text.size();
  std::string encoded;
  encoded.reserve(bytes);
  for (const auto& text : strings) {
    const std::uint64_t length = text.size();
    encoded.append(reinterpret_cast<const char*>(&length), sizeof(length));
  }
  for (const auto& text : strings) encoded += text;
  return encoded;
}

void decode_strings(std::string_view bytes, std::span<std::string> strings) {
  if (bytes.size() / kLengthBytes < strings.size())
    throw InvalidArgumentError("{} strings came in {} bytes", strings.size(), bytes.size());
  auto rest = bytes.substr(strings.size() * kLengthBytes);
  for (std::size_t i = 0; i < strings.size(); ++i) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + i * kLengthBytes, sizeof(length));
    if (length > rest.size()) throw InvalidArgumentError("string {} ends behind the tensor", i);
    strings[i] = rest.substr(0, length);
    rest.remove_prefix(length);
  }
  if (!rest.empty()) throw InvalidArgumentError("{} bytes came behind the strings", rest.size());
}

}  // namespace kolo::detail
