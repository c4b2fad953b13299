#include <kolo/collectives/algorithms/exchange.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 30;  // what one message may carry

class Exchange final : public Collective {
 public:
  Exchange(PointToPoint& network, std::span<const std::span<const std::byte>> out,
           std::span<const std::span<std::byte>> in)
      : network_(network), out_(out.begin(), out.end()), in_(in.begin(), in.end()) {}

  // Receives first, and each rank begins with its right neighbour, so that no rank is everybody's first.
  void start() override {
    pending_.clear();
    const int ranks = network_.size(), own = network_.rank();
    for (int k = 1; k < ranks && !in_.empty(); ++k) receive((own - k + ranks) % ranks);
    for (int k = 1; k < ranks && !out_.empty(); ++k) send((own + k) % ranks);
    if (!out_.empty() && !in_.empty() && !in_[own].empty())
      std::memmove(in_[own].data(), out_[own].data(), in_[own].size());
  }

  Progress progress() override {
    const auto before = pending_.size();
    std::erase_if(pending_, [this](PointToPoint::Request request) { return network_.test(request); });
    if (pending_.empty()) return Progress::finished;
    return pending_.size() < before ? Progress::advanced : Progress::none;
  }

 private:
  void receive(int from) {
    for (auto rest = in_[from]; !rest.empty(); rest = rest.subspan(std::min(rest.size(), kPieceBytes)))
      pending_.push_back(network_.receive(from, rest.first(std::min(rest.size(), kPieceBytes))));
  }
  void send(int to) {
    for (auto rest = out_[to]; !rest.empty(); rest = rest.subspan(std::min(rest.size(), kPieceBytes)))
      pending_.push_back(network_.send(to, rest.first(std::min(rest.size(), kPieceBytes))));
  }

  PointToPoint& network_;
  std::vector<std::span<const std::byte>> out_;
  std::vector<std::span<std::byte>> in_;
  std::vector<PointToPoint::Request> pending_;
};

}  // namespace

std::shared_ptr<Collective> exchange(PointToPoint& network, std::span<const std::span<const std::byte>> out,
                                     std::span<const std::span<std::byte>> in) {
  const auto ranks = static_cast<std::size_t>(network.size());
  if ((!out.empty() && out.size() != ranks) || (!in.empty() && in.size() != ranks))
    throw InvalidArgumentError("an exchange over {} ranks was given {} blocks to send and {} to receive",
                               ranks, out.size(), in.size());
  return std::make_shared<Exchange>(network, out, in);
}

}  // namespace kolo
