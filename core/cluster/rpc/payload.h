// What follows a control message: graphs, tensors and metadata, as a stream of messages. Each payload is a
// message `<size of the header, 4 bytes little endian> <PayloadHeader> <bytes>`; where header and bytes are
// more than 64 KiB, that message ends behind the header and the bytes follow in messages of one chunk each. A
// tensor's bytes are its elements row by row, little endian; of strings: the lengths, 8 bytes each, then all
// their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <kolo/core/cluster/rpc/limits.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::cluster {
class PayloadHeader;
}

namespace kolo::detail {

inline constexpr std::size_t kOneMessageBytes = std::size_t{64} << 10;

enum class PayloadKind { tensor, graph, metadata };

/// Where the payloads of one call go.
class PayloadTarget {
 public:
  virtual ~PayloadTarget() = default;
  /// Memory for a tensor whose header has been checked. Throws where there may be none so large, or `key` is
  /// none that was asked for.
  virtual Tensor memory_for(std::size_t key, DType dtype, const Shape& shape) = 0;
  /// absent: there is no value; dead: of a branch that was not taken. Both: an empty tensor.
  virtual void on_tensor(std::size_t key, Tensor value, bool dead, bool absent) = 0;
  virtual void on_bytes(PayloadKind kind, std::string bytes) = 0;
};

/// Puts the messages of one stream together. Bytes may be hostile: throws InvalidArgumentError for what is
/// malformed, ResourceExhaustedError naming limit and value beyond the limits (resolved ones), both by what a
/// header says, before memory is taken. One thread at a time.
class PayloadReader {
 public:
  /// What becomes of a tensor before the next one comes. Where all are kept, the bound holds for their sum.
  enum class Tensors { taken_one_by_one, kept };
  PayloadReader(PayloadTarget& target, const RpcLimits& limits, Tensors tensors = Tensors::taken_one_by_one)
      : target_(target), limits_(limits), tensors_(tensors) {}
  /// One message, in pieces. The elements of a tensor are copied once, to where they belong.
  void read(std::span<const std::string_view> pieces);
  /// Between two payloads: the end of a stream is legal here only.
  bool between() const { return !open_; }

 private:
  class Pieces;
  void begin(Pieces& pieces);
  void begin_tensor(const kolo::cluster::PayloadHeader& header);
  void keep(std::uint64_t bytes);
  void take(Pieces& pieces);
  void complete();

  PayloadTarget& target_;
  RpcLimits limits_;
  const Tensors tensors_;
  std::uint64_t kept_bytes_ = 0;
  bool open_ = false;  // the bytes of a payload are missing
  PayloadKind kind_ = PayloadKind::tensor;
  std::size_t key_ = 0;
  Tensor tensor_;  // numbers are written into it as they come
  DType dtype_ = DType::f32;
  Shape shape_;
  std::uint64_t bytes_ = 0;
  std::uint64_t taken_ = 0;
  std::string text_;  // of graphs, metadata and strings: grows with what has come, not with what was promised
};

/// Payload bytes of a tensor of strings.
std::string encode_strings(const Tensor& value);
/// Throws InvalidArgumentError for bytes that are not `elements` strings.
void decode_strings(std::string_view bytes, std::span<std::string> strings);

}  // namespace kolo::detail
