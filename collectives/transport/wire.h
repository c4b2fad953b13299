// Numbers and texts as bytes, for the engine's messages: between ranks of one build, so without versions.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <kolo/core/base/error.h>

namespace kolo::detail {

class ByteWriter {
 public:
  /// Small numbers take one byte: seven bits a byte, the sign in the lowest.
  void number(std::int64_t value) {
    auto rest = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
    for (; rest >= 128; rest >>= 7) bytes_.push_back(static_cast<char>(rest | 128));
    bytes_.push_back(static_cast<char>(rest));
  }
  void word(std::uint64_t value) { raw(&value, sizeof value); }
  void real(double value) { raw(&value, sizeof value); }
  void text(std::string_view value) {
    number(static_cast<std::int64_t>(value.size()));
    bytes_.append(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  void raw(const void* from, std::size_t bytes) { bytes_.append(static_cast<const char*>(from), bytes); }
  std::string bytes_;
};

/// Throws InternalError where the bytes end too early.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  std::int64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128 || shift > 56) break;
    }
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  int integer() { return static_cast<int>(number()); }
  std::uint64_t word() { return raw<std::uint64_t>(); }
  double real() { return raw<double>(); }
  std::string text() { return std::string(take(static_cast<std::size_t>(number()))); }
  /// What was not read yet.
  std::string_view rest() const { return rest_; }

 private:
  std::string_view take(std::size_t bytes) {
    if (bytes > rest_.size()) throw InternalError("a message of the engine is cut off");
    const auto taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  template <typename T>
  T raw() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view rest_;
};

}  // namespace kolo::detail
