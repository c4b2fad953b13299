#include <kolo/core/runtime/replay_check.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/stream_kernels.h>

namespace kolo {
namespace {

std::vector<WrittenMemory> last_writers(std::vector<WrittenMemory> written) {
  std::reverse(written.begin(), written.end());
  std::set<std::pair<const std::byte*, std::size_t>> seen;
  std::vector<WrittenMemory> last;
  for (const WrittenMemory& memory : written)
    if (memory.tensor->bytes() > 0 && seen.emplace(memory.tensor->raw(), memory.tensor->bytes()).second)
      last.push_back(memory);
  std::reverse(last.begin(), last.end());
  return last;
}

bool is_same(const Tensor& a, const Tensor& b) { return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0; }

}  // namespace

ReplayCheck::ReplayCheck(Device& device, Device& host, std::vector<WrittenMemory> written)
    : device_(device), host_(host), written_(last_writers(std::move(written))) {}

void ReplayCheck::wait(Stream& stream) const {
  StreamEnds({&stream}).wait([] { return false; });
}

std::vector<Tensor> ReplayCheck::read() const {
  wait(*device_.stream(StreamKind::compute));
  Stream& out = *copy_stream(device_, host_);
  std::vector<Tensor> copies;
  for (const WrittenMemory& memory : written_)
    copies.emplace_back(memory.tensor->dtype(), memory.tensor->shape(), device_.host_allocator());
  out.enqueue([&] {
    for (std::size_t i = 0; i < written_.size(); ++i)
      host_.copy_from(device_, *written_[i].tensor, copies[i]);
  });
  wait(out);
  return copies;
}

// What the work has only read stays untouched: others may read it, too.
void ReplayCheck::restore(const std::vector<Tensor>& before, const std::vector<Tensor>& after) const {
  Stream& in = *copy_stream(host_, device_);
  in.enqueue([&] {
    for (std::size_t i = 0; i < written_.size(); ++i)
      if (!is_same(before[i], after[i])) device_.copy_from(host_, before[i], *written_[i].tensor);
  });
  wait(in);
}

void ReplayCheck::compare(const std::function<void()>& replay, const std::function<void()>& piece_by_piece) {
  const std::vector<Tensor> before = read();
  replay();
  const std::vector<Tensor> replayed = read();
  restore(before, replayed);
  piece_by_piece();
  const std::vector<Tensor> expected = read();
  for (std::size_t i = 0; i < written_.size(); ++i)
    if (!is_same(replayed[i], expected[i]))
      throw InternalError(
          "kept work makes other bits than the same work node by node, the first of them in the memory that "
          "node {} writes last; KOLO_CUDA_GRAPHS=0 keeps none",
          *written_[i].node);
}

}  // namespace kolo
