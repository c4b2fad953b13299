#include <kolo/core/training/string_tensors.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

constexpr std::size_t kLengthBytes = 8;

std::uint64_t length_at(const std::byte* bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return length;
}

}  // namespace

Tensor encode_strings(const Tensor& strings) {
  const auto elements = strings.span<std::string>();
  std::size_t bytes = elements.size() * kLengthBytes;
  for (const std::string& element : elements) bytes += element.size();
  const Tensor encoded(DType::u8, {static_cast<std::int64_t>(bytes)});
  std::byte* length = encoded.raw();
  std::byte* text = length + elements.size() * kLengthBytes;
  for (const std::string& element : elements) {
    for (std::size_t i = 0; i < kLengthBytes; ++i)
      *length++ = static_cast<std::byte>(std::uint64_t{element.size()} >> (8 * i));
    if (!element.empty()) std::memcpy(text, element.data(), element.size());
    text += element.size();
  }
  return encoded;
}

void decode_strings(const Tensor& encoded, const Tensor& strings) {
  const auto elements = strings.span<std::string>();
  const std::size_t lengths = elements.size() * kLengthBytes;
  if (encoded.bytes() < lengths)
    throw DataLossError("{} bytes, but the lengths of {} strings take {}", encoded.bytes(), elements.size(),
                        lengths);
  // Before any of them: a failed read changes nothing.
  std::uint64_t left = encoded.bytes() - lengths;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::uint64_t length = length_at(encoded.raw() + i * kLengthBytes);
    if (length > left)
      throw DataLossError("string {} of {} is said to have {} bytes; {} are left", i, elements.size(), length,
                          left);
    left -= length;
  }
  if (left != 0) throw DataLossError("{} bytes follow the {} strings", left, elements.size());
  const char* text = reinterpret_cast<const char*>(encoded.raw()) + lengths;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i].assign(text, length_at(encoded.raw() + i * kLengthBytes));
    text += elements[i].size();
  }
}

}  // namespace kolo::detail
