#include <kolo/collectives/algorithms/message_collectives.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include <kolo/collectives/algorithms/rounds.h>
#include <kolo/collectives/algorithms/tree.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

class DisseminationBarrier final : public Collective {
 public:
  explicit DisseminationBarrier(PointToPoint& network) : rounds_(network, 1) {
    const std::int64_t rank = network.rank(), ranks = network.size();
    for (std::int64_t distance = 1; distance < ranks; distance *= 2) {
      rounds_.send(static_cast<int>((rank + distance) % ranks), out_);
      rounds_.receive(static_cast<int>((rank - distance + ranks) % ranks), in_);
      rounds_.end_round();
    }
  }
  void start() override { rounds_.start(); }
  Progress progress() override { return rounds_.progress(); }

 private:
  std::array<std::byte, 1> out_{}, in_{};
  Rounds rounds_;
};

}  // namespace

std::shared_ptr<Collective> dissemination_barrier(PointToPoint& network) {
  return std::make_shared<DisseminationBarrier>(network);
}

namespace {

constexpr std::int64_t kWindow = 4;  // chunks under way on each link

/// Messages 0, 1, … of one link, of which up to kWindow are under way.
class MessageStream {
 public:
  std::int64_t posted() const { return posted_; }
  std::int64_t done() const { return done_; }
  bool is_open() const { return posted_ < done_ + kWindow; }
  void reset() { posted_ = done_ = 0; }
  void post(PointToPoint::Request request) { requests_[posted_++ % kWindow] = request; }
  bool finish_one(PointToPoint& network) {
    if (done_ == posted_ || !network.test(requests_[done_ % kWindow])) return false;
    ++done_;
    return true;
  }

 private:
  std::array<PointToPoint::Request, kWindow> requests_{};
  std::int64_t posted_ = 0, done_ = 0;
};

class Broadcast final : public Collective {
 public:
  Broadcast(PointToPoint& network, std::span<std::byte> bytes, int root, std::int64_t chunk_bytes)
      : network_(network), bytes_(bytes), chunk_bytes_(static_cast<std::size_t>(chunk_bytes)) {
    chunks_ = static_cast<std::int64_t>((bytes.size() + chunk_bytes_ - 1) / chunk_bytes_);
    const int ranks = network.size();
    const int place = (network.rank() - root + ranks) % ranks;  // root's is 0
    TreePlace links = binomial_tree(place, ranks);
    const auto widest = static_cast<std::int64_t>(binomial_tree(0, ranks).children.size());
    if (chunks_ + ranks - 2 <
        chunks_ * widest) {  // chunks sent one after another: along a chain, along the tree
      links.parent = place - 1;
      links.children.assign(place + 1 < ranks ? 1 : 0, place + 1);
    }
    parent_ = links.parent < 0 ? -1 : (links.parent + root) % ranks;
    for (const int child : links.children) children_.push_back((child + root) % ranks);
    // The child with the largest subtree first.
    std::reverse(children_.begin(), children_.end());
    sent_.resize(children_.size());
  }

  void start() override {
    received_.reset();
    for (MessageStream& stream : sent_) stream.reset();
  }

  Progress progress() override {
    bool advanced = false;
    while (step()) advanced = true;
    const bool has_all = parent_ < 0 || received_.done() == chunks_;
    if (has_all &&
        std::all_of(sent_.begin(), sent_.end(), [&](auto& sent) { return sent.done() == chunks_; }))
      return Progress::finished;
    return advanced ? Progress::advanced : Progress::none;
  }

 private:
  bool step() {
    bool did_something = false;
    if (parent_ >= 0) {
      if (received_.posted() < chunks_ && received_.is_open()) {
        received_.post(network_.receive(parent_, chunk(received_.posted())));
        did_something = true;
      }
      if (received_.finish_one(network_)) did_something = true;
    }
    const std::int64_t here = parent_ < 0 ? chunks_ : received_.done();
    for (std::size_t child = 0; child < children_.size(); ++child) {
      if (sent_[child].posted() < here && sent_[child].is_open()) {
        sent_[child].post(network_.send(children_[child], chunk(sent_[child].posted())));
        did_something = true;
      }
      if (sent_[child].finish_one(network_)) did_something = true;
    }
    return did_something;
  }

  std::span<std::byte> chunk(std::int64_t index) const {
    const auto first = static_cast<std::size_t>(index) * chunk_bytes_;
    return bytes_.subspan(first, std::min(chunk_bytes_, bytes_.size() - first));
  }

  PointToPoint& network_;
  const std::span<std::byte> bytes_;
  const std::size_t chunk_bytes_;
  std::int64_t chunks_ = 0;
  int parent_ = -1;
  std::vector<int> children_;
  MessageStream received_;
  std::vector<MessageStream> sent_;  // by child
};

}  // namespace

std::shared_ptr<Collective> broadcast(PointToPoint& network, std::span<std::byte> bytes, int root,
                                      std::int64_t chunk_bytes) {
  return std::make_shared<Broadcast>(network, bytes, root, chunk_bytes);
}

namespace {

constexpr std::size_t kMostMessageBytes = std::size_t{1} << 30;  // what one message may carry

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
    for (auto rest = in_[from]; !rest.empty(); rest = rest.subspan(std::min(rest.size(), kMostMessageBytes)))
      pending_.push_back(network_.receive(from, rest.first(std::min(rest.size(), kMostMessageBytes))));
  }
  void send(int to) {
    for (auto rest = out_[to]; !rest.empty(); rest = rest.subspan(std::min(rest.size(), kMostMessageBytes)))
      pending_.push_back(network_.send(to, rest.first(std::min(rest.size(), kMostMessageBytes))));
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
