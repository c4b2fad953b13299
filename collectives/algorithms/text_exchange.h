// Every rank's text to every rank, as an operation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kolo/collectives/algorithms/communicator.h>

namespace kolo {

/// Lengths first, then the texts. `communicator` outlives it. One thread at a time, as every Collective.
class TextExchange final : public Collective {
 public:
  explicit TextExchange(Communicator& communicator) : communicator_(communicator) {}
  /// What this rank gives; before start().
  void set_own(std::string text) { own_ = std::move(text); }
  void start() override;
  Progress progress() override;
  /// In rank order, once it has finished.
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  void start_texts();

  Communicator& communicator_;
  std::string own_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::string> texts_;
  std::shared_ptr<Collective> stage_;
  bool lengths_known_ = false;
};

}  // namespace kolo
