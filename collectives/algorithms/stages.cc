#include <kolo/collectives/algorithms/stages.h>

#include <utility>
#include <vector>

#include <kolo/collectives/reduce/reduce.h>

namespace kolo {
namespace {

class Stages final : public Collective {
 public:
  explicit Stages(std::vector<Stage> stages) : stages_(std::move(stages)) {}
  void start() override {
    next_ = 0;
    current_ = nullptr;
  }
  Progress progress() override {
    bool advanced = false;
    while (true) {
      if (current_) {
        const Progress progress = current_->progress();
        if (progress != Progress::finished)
          return advanced || progress == Progress::advanced ? Progress::advanced : Progress::none;
        current_ = nullptr;
      }
      if (next_ == stages_.size()) return Progress::finished;
      current_ = stages_[next_++]();
      if (current_) current_->start();
      advanced = true;
    }
  }
  const char* phase() const override { return current_ ? current_->phase() : nullptr; }

 private:
  const std::vector<Stage> stages_;
  std::size_t next_ = 0;
  std::shared_ptr<Collective> current_;
};

}  // namespace

std::shared_ptr<Collective> in_stages(std::vector<Stage> stages) {
  return std::make_shared<Stages>(std::move(stages));
}

std::shared_ptr<Collective> in_sequence(std::vector<std::shared_ptr<Collective>> operations) {
  std::vector<Stage> stages;
  stages.reserve(operations.size());
  for (auto& operation : operations)
    stages.emplace_back([operation = std::move(operation)] { return operation; });
  return in_stages(std::move(stages));
}

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
