#include <kolo/collectives/algorithms/widened.h>

#include <vector>

#include <kolo/collectives/reduce/reduce.h>

namespace kolo {
namespace {

class Widened final : public Collective {
 public:
  Widened(const TypedBuffer& buffer,
          const std::function<std::shared_ptr<Collective>(const TypedBuffer&)>& make)
      : buffer_(buffer),
        wide_(static_cast<std::size_t>(buffer.elements)),
        operation_(make(TypedBuffer::of(std::span(wide_)))) {}

  void start() override {
    widen(buffer_.dtype, wide_.data(), buffer_.bytes, buffer_.elements);
    operation_->start();
  }
  Progress progress() override {
    const Progress progress = operation_->progress();
    if (progress == Progress::finished) narrow(buffer_.dtype, buffer_.bytes, wide_.data(), buffer_.elements);
    return progress;
  }
  const char* phase() const override { return operation_->phase(); }

 private:
  const TypedBuffer buffer_;
  std::vector<float> wide_;
  const std::shared_ptr<Collective> operation_;
};

}  // namespace

std::shared_ptr<Collective> widened(
    const TypedBuffer& buffer, const std::function<std::shared_ptr<Collective>(const TypedBuffer&)>& make) {
  return std::make_shared<Widened>(buffer, make);
}

std::shared_ptr<Collective> widened_where(
    bool f32_wire, const TypedBuffer& buffer,
    const std::function<std::shared_ptr<Collective>(const TypedBuffer&)>& make) {
  const bool is_16_bit = buffer.dtype == DType::f16 || buffer.dtype == DType::bf16;
  return f32_wire && is_16_bit ? widened(buffer, make) : make(buffer);
}

}  // namespace kolo
