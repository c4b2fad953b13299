#include <kolo/collectives/algorithms/text_exchange.h>

#include <cstddef>
#include <span>

namespace kolo {

void TextExchange::start() {
  lengths_.assign(communicator_.size(), 0);
  lengths_[communicator_.rank()] = static_cast<std::int64_t>(own_.size());
  std::vector<std::span<std::byte>> blocks;
  for (auto& length : lengths_) blocks.push_back(std::as_writable_bytes(std::span(&length, 1)));
  lengths_known_ = false;
  stage_ = communicator_.allgather(blocks);
  stage_->start();
}

void TextExchange::start_texts() {
  texts_.assign(communicator_.size(), "");
  std::vector<std::span<std::byte>> blocks;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    if (rank == communicator_.rank()) texts_[rank] = own_;
    texts_[rank].resize(static_cast<std::size_t>(lengths_[rank]));
    blocks.push_back(std::as_writable_bytes(std::span(texts_[rank].data(), texts_[rank].size())));
  }
  lengths_known_ = true;
  stage_ = communicator_.allgather(blocks);
  stage_->start();
}

Progress TextExchange::progress() {
  const Progress progress = stage_->progress();
  if (progress != Progress::finished || lengths_known_) return progress;
  start_texts();
  return Progress::advanced;
}

}  // namespace kolo
