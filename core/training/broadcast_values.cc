#include <kolo/core/training/broadcast_values.h>

#include <cstring>
#include <string>

#include <kolo/core/training/string_tensors.h>

namespace kolo::detail {

void broadcast_values(Group& group, const std::vector<Tensor>& values, int root) {
  std::vector<Tensor> numbers;
  for (const Tensor& value : values)
    if (value.dtype() != DType::string) numbers.push_back(value);
  if (!numbers.empty()) group.broadcast(numbers, root);
  for (const Tensor& value : values) {
    if (value.dtype() != DType::string) continue;
    std::string text;
    if (group.rank() == root) {
      const Tensor own = encode_strings(value);
      text.assign(reinterpret_cast<const char*>(own.raw()), own.bytes());
    }
    text = group.broadcast(text, root);
    const Tensor received(DType::u8, {static_cast<std::int64_t>(text.size())});
    if (!text.empty()) std::memcpy(received.raw(), text.data(), text.size());
    if (group.rank() != root) decode_strings(received, value);
  }
}

}  // namespace kolo::detail
