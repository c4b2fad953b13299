#include <kolo/collectives/algorithms/rounds.h>

#include <algorithm>
#include <utility>

#include <kolo/core/tensor/allocator.h>

namespace kolo {
namespace {

constexpr std::size_t kMostParts = 16;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

}  // namespace

Rounds::Rounds(PointToPoint& network, std::int64_t chunk_bytes)
    : network_(network),
      chunk_bytes_(std::max(static_cast<std::size_t>(chunk_bytes), kAlignment)),
      rounds_(1) {}

std::size_t Rounds::part_bytes(std::size_t bytes) const {
  const std::size_t wanted = std::max(chunk_bytes_, bytes / kMostParts);
  return std::min((wanted + kAlignment - 1) / kAlignment * kAlignment, kMostBytes);
}

void Rounds::send(int to, std::span<const std::byte> bytes) {
  const std::size_t part = part_bytes(bytes.size());
  for (std::size_t first = 0; first < bytes.size(); first += part)
    last().sends.push_back({to, bytes.subspan(first, std::min(part, bytes.size() - first))});
}

void Rounds::receive(int from, std::span<std::byte> bytes, PartAction on_part) {
  const std::size_t part = part_bytes(bytes.size());
  for (std::size_t first = 0; first < bytes.size(); first += part)
    last().receives.push_back({from, bytes.subspan(first, std::min(part, bytes.size() - first)),
                               static_cast<std::int64_t>(first), on_part});
}

void Rounds::end_round(Action then) {
  last().then = std::move(then);
  send_requests_.reserve(std::max(send_requests_.capacity(), last().sends.size()));
  receive_requests_.reserve(std::max(receive_requests_.capacity(), last().receives.size()));
  rounds_.emplace_back();
}

void Rounds::start() {
  current_ = 0;
  posted_ = false;
}

Progress Rounds::progress() {
  bool advanced = false;
  for (; current_ < rounds_.size(); ++current_, posted_ = false) {
    const Round& round = rounds_[current_];
    if (!posted_) {
      post(round);
      advanced = true;
    }
    if (finish_messages(round)) advanced = true;
    if (received_ < round.receives.size() || sent_ < round.sends.size())
      return advanced ? Progress::advanced : Progress::none;
    if (round.then) round.then();
  }
  return Progress::finished;
}

// Receives first: what arrives then has a place.
void Rounds::post(const Round& round) {
  receive_requests_.clear();
  send_requests_.clear();
  sent_ = received_ = 0;
  for (const Incoming& in : round.receives) receive_requests_.push_back(network_.receive(in.from, in.bytes));
  for (const Outgoing& out : round.sends) send_requests_.push_back(network_.send(out.to, out.bytes));
  posted_ = true;
}

// In their order, so that reductions come in the same order in every run; true if one has finished.
bool Rounds::finish_messages(const Round& round) {
  const std::size_t before = sent_ + received_;
  for (; received_ < round.receives.size() && network_.test(receive_requests_[received_]); ++received_) {
    const Incoming& in = round.receives[received_];
    if (in.on_part) in.on_part(in.first_byte, static_cast<std::int64_t>(in.bytes.size()));
  }
  while (sent_ < round.sends.size() && network_.test(send_requests_[sent_])) ++sent_;
  return sent_ + received_ > before;
}

}  // namespace kolo
