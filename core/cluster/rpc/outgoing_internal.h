// What one end of a call sends, cut into messages of gRPC without copying large tensors.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <kolo/core/cluster/rpc/payload.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// One control message or payload. The memory of a large tensor is referred to by the messages made of it:
/// `released` is called once, from whichever thread drops the last one of them, or of this. Movable.
class Outgoing {
 public:
  static Outgoing control(const google::protobuf::MessageLite& message);
  static Outgoing tensor(std::size_t key, const Tensor& value, std::size_t chunk_bytes,
                         std::function<void()> released = {});
  static Outgoing absent(std::size_t key);
  static Outgoing dead(std::size_t key);
  static Outgoing bytes(PayloadKind kind, std::string bytes, std::size_t chunk_bytes,
                        std::uint64_t nodes = 0);

  /// The next message; call it until done().
  grpc::ByteBuffer next();
  bool done() const { return first_.empty() && sent_ == bytes_; }

 private:
  class Lease;
  Outgoing() = default;

  std::string first_;  // header, and what fits behind it
  std::shared_ptr<Lease> lease_;
  const std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;  // of memory
  std::size_t sent_ = 0;
  std::size_t chunk_bytes_ = 0;
};

/// What waits to be sent: mostly nothing, which costs nothing.
using Outgoings = std::list<Outgoing>;

/// The bytes of a received message, as they lie: valid as long as this.
class MessagePieces {
 public:
  explicit MessagePieces(const grpc::ByteBuffer& message);
  std::span<const std::string_view> pieces() const { return pieces_; }
  std::string joined() const;

 private:
  std::vector<grpc::Slice> slices_;
  std::vector<std::string_view> pieces_;
};

}  // namespace kolo::detail
