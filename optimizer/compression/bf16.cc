#include <kolo/optimizer/compression/bf16.h>

#include <kolo/optimizer/cast_compression.h>

namespace kolo {

std::shared_ptr<const Compression> bf16_compression() {
  return std::make_shared<detail::CastCompression>("bf16", DType::bf16);
}

}  // namespace kolo
