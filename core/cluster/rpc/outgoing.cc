#include <algorithm>
#include <utility>
#include <vector>

#include <grpcpp/support/slice.h>

#include <kolo/core/base/error.h>

#include <kolo/core/cluster/rpc/messages_internal.h>
#include <kolo/core/cluster/rpc/outgoing_internal.h>
#include <kolo/core/cluster/rpc/polled_queue_internal.h>

namespace kolo::detail {
namespace {

using kolo::cluster::PayloadHeader;

std::string with_size(const PayloadHeader& header) {
  const std::string bytes = header.SerializeAsString();
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::string text(reinterpret_cast<const char*>(&size), sizeof(size));
  return text += bytes;
}

bool fits_one_message(const std::string& header, std::size_t bytes) {
  return header.size() + bytes <= kOneMessageBytes;
}

}  // namespace

// Keeps what is being sent; ends with the last slice that refers to it.
class Outgoing::Lease {
 public:
  Lease(Tensor tensor, std::string bytes, std::function<void()> released)
      : tensor_(std::move(tensor)), bytes_(std::move(bytes)), released_(std::move(released)) {}
  ~Lease() {
    tensor_ = Tensor();
    if (released_) released_();
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  const std::string& bytes() const { return bytes_; }

 private:
  Tensor tensor_;
  std::string bytes_;
  std::function<void()> released_;
};

Outgoing Outgoing::control(const google::protobuf::MessageLite& message) {
  Outgoing made;
  made.first_ = message.SerializeAsString();
  // An empty message is one, too: done() tells by the text. Protobuf skips fields that it does not know.
  if (made.first_.empty()) made.first_.assign("\x78\x00", 2);  // field 15, a number: 0
  return made;
}

Outgoing Outgoing::absent(std::size_t key) {
  PayloadHeader header;
  header.set_key(static_cast<std::uint32_t>(key));
  header.set_absent(true);
  Outgoing made;
  made.first_ = with_size(header);
  return made;
}

Outgoing Outgoing::dead(std::size_t key) {
  PayloadHeader header;
  header.set_key(static_cast<std::uint32_t>(key));
  header.set_dead(true);
  Outgoing made;
  made.first_ = with_size(header);
  return made;
}

Outgoing Outgoing::tensor(std::size_t key, const Tensor& value, std::size_t chunk_bytes,
                          std::function<void()> released) {
  std::string strings;
  const bool is_text = value.dtype() == DType::string;
  if (is_text) strings = encode_strings(value);
  PayloadHeader header;
  header.set_key(static_cast<std::uint32_t>(key));
  header.set_dtype(static_cast<std::uint32_t>(value.dtype()));
  for (const std::int64_t dim : value.shape().dims()) header.add_dims(dim);
  const std::size_t bytes = is_text ? strings.size() : value.bytes();
  header.set_bytes(bytes);

  Outgoing made;
  made.first_ = with_size(header);
  made.chunk_bytes_ = chunk_bytes;
  const auto* memory = is_text ? reinterpret_cast<const std::byte*>(strings.data()) : value.raw();
  if (fits_one_message(made.first_, bytes)) {
    // Copied: less than what gRPC spends on a slice with an owner, and the value is free at once.
    if (bytes > 0) made.first_.append(reinterpret_cast<const char*>(memory), bytes);
    if (released) released();
    return made;
  }
  made.lease_ = std::make_shared<Lease>(is_text ? Tensor() : value, std::move(strings), std::move(released));
  made.memory_ = is_text ? reinterpret_cast<const std::byte*>(made.lease_->bytes().data()) : value.raw();
  made.bytes_ = bytes;
  return made;
}

Outgoing Outgoing::bytes(PayloadKind kind, std::string bytes, std::size_t chunk_bytes, std::uint64_t nodes) {
  PayloadHeader header;
  header.set_kind(kind == PayloadKind::graph ? PayloadHeader::GRAPH : PayloadHeader::METADATA);
  header.set_bytes(bytes.size());
  header.set_nodes(nodes);
  Outgoing made;
  made.first_ = with_size(header);
  made.chunk_bytes_ = chunk_bytes;
  if (fits_one_message(made.first_, bytes.size())) {
    made.first_ += bytes;
    return made;
  }
  made.bytes_ = bytes.size();
  made.lease_ = std::make_shared<Lease>(Tensor(), std::move(bytes), nullptr);
  made.memory_ = reinterpret_cast<const std::byte*>(made.lease_->bytes().data());
  return made;
}

grpc::ByteBuffer Outgoing::next() {
  if (!first_.empty()) {
    const grpc::Slice slice(first_);
    first_.clear();
    return grpc::ByteBuffer(&slice, 1);
  }
  const std::size_t now = std::min(chunk_bytes_, bytes_ - sent_);
  auto owner = std::make_unique<std::shared_ptr<Lease>>(lease_);
  hand_over(owner.get());
  // gRPC takes a pointer to what it only reads.
  const grpc::Slice slice(
      const_cast<std::byte*>(memory_ + sent_), now,
      [](void* held) {
        take_over(held);
        std::unique_ptr<std::shared_ptr<Lease>>(static_cast<std::shared_ptr<Lease>*>(held));
      },
      owner.release());
  sent_ += now;
  if (sent_ == bytes_) lease_.reset();
  return grpc::ByteBuffer(&slice, 1);
}

MessagePieces::MessagePieces(const grpc::ByteBuffer& message) {
  if (message.Length() > 0 && !message.Dump(&slices_).ok())
    throw InvalidArgumentError("a message of {} bytes could not be read", message.Length());
  pieces_.reserve(slices_.size());
  for (const auto& slice : slices_)
    if (slice.size() > 0) pieces_.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

std::string MessagePieces::joined() const {
  std::string text;
  for (const auto piece : pieces_) text += piece;
  return text;
}

}  // namespace kolo::detail
