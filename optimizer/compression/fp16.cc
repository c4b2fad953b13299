#include <kolo/optimizer/compression/fp16.h>

#include <kolo/optimizer/cast_compression.h>

namespace kolo {

std::shared_ptr<const Compression> fp16_compression() {
  return std::make_shared<detail::CastCompression>("fp16", DType::f16);
}

}  // namespace kolo
