#include <kolo/collectives/algorithms/scaled.h>

#include <utility>

#include <kolo/collectives/reduce/reduce.h>

namespace kolo {
namespace {

class Scaled final : public Collective {
 public:
  Scaled(std::shared_ptr<Collective> operation, const TypedBuffer& buffer, const TypedBuffer& result,
         double prescale, double postscale)
      : operation_(std::move(operation)),
        buffer_(buffer),
        result_(result),
        prescale_(prescale),
        postscale_(postscale) {}

  void start() override {
    if (prescale_ != 1) multiply(buffer_.dtype, buffer_.bytes, buffer_.elements, prescale_);
    operation_->start();
  }
  Progress progress() override {
    const Progress progress = operation_->progress();
    if (progress == Progress::finished && postscale_ != 1)
      multiply(result_.dtype, result_.bytes, result_.elements, postscale_);
    return progress;
  }
  const char* phase() const override { return operation_->phase(); }
  bool needs_comm_thread() const override { return operation_->needs_comm_thread(); }

 private:
  const std::shared_ptr<Collective> operation_;
  const TypedBuffer buffer_, result_;
  const double prescale_, postscale_;
};

}  // namespace

std::shared_ptr<Collective> scaled(std::shared_ptr<Collective> operation, const TypedBuffer& buffer,
                                   const TypedBuffer& result, double prescale, double postscale) {
  if (prescale == 1 && postscale == 1) return operation;
  return std::make_shared<Scaled>(std::move(operation), buffer, result, prescale, postscale);
}

}  // namespace kolo
