#include <kolo/collectives/algorithms/barrier.h>

#include <array>
#include <cstddef>

#include <kolo/collectives/algorithms/rounds.h>

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

}  // namespace kolo
