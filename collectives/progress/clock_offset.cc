#include <kolo/collectives/progress/clock_offset.h>

#include <limits>
#include <span>

namespace kolo::detail {
namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void ClockOffset::start() {
  peer_ = 1;
  round_ = 0;
  offset_ = 0;
  best_trip_ = std::numeric_limits<std::int64_t>::max();
  finished_ = network_.size() == 1;
  sending_.reset();
  receiving_.reset();
}

Progress ClockOffset::progress() {
  bool advanced = false;
  while (!finished_ && step()) advanced = true;
  if (finished_) return Progress::finished;
  return advanced ? Progress::advanced : Progress::none;
}

bool ClockOffset::done(std::optional<PointToPoint::Request>& request) {
  if (!request) return true;
  if (!network_.test(*request)) return false;
  request.reset();
  return true;
}

bool ClockOffset::step() { return network_.rank() == 0 ? ask() : answer(); }

bool ClockOffset::ask() {
  if (!done(sending_)) return false;
  if (receiving_) {
    if (!done(receiving_)) return false;
    const std::int64_t answered = now(), trip = answered - asked_;
    if (trip < best_trip_) {
      best_trip_ = trip;
      best_offset_ = in_ - (asked_ + trip / 2);
    }
    ++round_;
  }
  if (round_ > kRounds) {  // the last message of this peer has left
    round_ = 0;
    best_trip_ = std::numeric_limits<std::int64_t>::max();
    finished_ = ++peer_ == network_.size();
    return true;
  }
  if (round_ == kRounds) {
    out_ = best_offset_;
    sending_ = network_.send(peer_, std::as_bytes(std::span(&out_, 1)));
    ++round_;
    return true;
  }
  asked_ = now();
  sending_ = network_.send(peer_, std::as_bytes(std::span(&out_, 1)));
  receiving_ = network_.receive(peer_, std::as_writable_bytes(std::span(&in_, 1)));
  return true;
}

bool ClockOffset::answer() {
  if (!done(sending_)) return false;
  if (!receiving_) {
    receiving_ = network_.receive(0, std::as_writable_bytes(std::span(&in_, 1)));
    return true;
  }
  if (!done(receiving_)) return false;
  if (round_++ == kRounds) {
    offset_ = in_;
    finished_ = true;
    return true;
  }
  out_ = now();
  sending_ = network_.send(0, std::as_bytes(std::span(&out_, 1)));
  return true;
}

}  // namespace kolo::detail
