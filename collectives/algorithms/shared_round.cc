#include <kolo/collectives/algorithms/shared_round.h>

namespace kolo {

Progress RoundOperation::progress() {
  bool advanced = false;
  while (filled_ < rounds_ && filled_ < taken_ + ahead_) {
    last_round_ = channel_.next_round();
    fill(filled_, last_round_);
    channel_.post(last_round_);
    ++filled_;
    advanced = true;
  }
  if (taken_ == rounds_) return Progress::finished;
  const std::uint64_t round = last_round_ - static_cast<std::uint64_t>(filled_ - taken_ - 1);
  if (!is_seen_ && !channel_.is_posted(round)) return advanced ? Progress::advanced : Progress::none;
  is_seen_ = !take(taken_, round);
  if (is_seen_) return Progress::advanced;
  ++taken_;
  return taken_ == rounds_ ? Progress::finished : Progress::advanced;
}

}  // namespace kolo
