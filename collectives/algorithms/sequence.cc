#include <kolo/collectives/algorithms/sequence.h>

#include <utility>

namespace kolo {
namespace {

class Sequence final : public Collective {
 public:
  explicit Sequence(std::vector<std::shared_ptr<Collective>> operations)
      : operations_(std::move(operations)) {}

  void start() override {
    current_ = 0;
    if (!operations_.empty()) operations_[0]->start();
  }
  Progress progress() override {
    bool advanced = false;
    while (current_ < operations_.size()) {
      const Progress progress = operations_[current_]->progress();
      if (progress != Progress::finished)
        return advanced || progress == Progress::advanced ? Progress::advanced : Progress::none;
      advanced = true;
      if (++current_ < operations_.size()) operations_[current_]->start();
    }
    return Progress::finished;
  }
  const char* phase() const override {
    return current_ < operations_.size() ? operations_[current_]->phase() : nullptr;
  }

 private:
  const std::vector<std::shared_ptr<Collective>> operations_;
  std::size_t current_ = 0;
};

}  // namespace

std::shared_ptr<Collective> in_sequence(std::vector<std::shared_ptr<Collective>> operations) {
  return std::make_shared<Sequence>(std::move(operations));
}

}  // namespace kolo
