#include <kolo/core/runtime/feed_memory.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/keep_for_ever.h>
#include <kolo/core/base/log.h>
#include <kolo/core/device/device_allocator.h>
#include <kolo/core/runtime/session_state.h>

namespace kolo {
namespace {

// Where values are of many sizes, those of sizes that no longer come are given back beyond so many.
constexpr std::size_t kMostKept = 16;

std::vector<std::shared_ptr<Device>> gpus_of(Session& session) {
  std::vector<std::shared_ptr<Device>> gpus;
  if (detail::remote_of(session) != nullptr) return gpus;
  for (const auto& device : detail::state_of(session).devices().devices())
    if (device->type() == "GPU") gpus.push_back(device);
  return gpus;
}

std::shared_ptr<Device> cpu_of(Session& session) {
  for (const auto& device : detail::state_of(session).devices().devices())
    if (device->type() == "CPU") return device;
  return nullptr;
}

// Who holds a batch may outlive the session, and with it the device.
struct OwnedMemory {
  OwnedMemory(std::shared_ptr<Device> gpu, std::size_t bytes)
      : device(std::move(gpu)), memory(device->allocator(), bytes) {}
  const std::shared_ptr<Device> device;
  Buffer memory;
};

}  // namespace

Allocator& feed_memory(Session& session) {
  const auto gpus = gpus_of(session);
  return gpus.empty() ? cpu_allocator() : gpus.front()->host_allocator();
}

// Work on a stream's thread refers to it and owns nothing: else that thread might be the last to let go of
// the device, and with it of itself.
struct FeedSender::Sent {
  std::shared_ptr<Buffer> memory;  // of the GPU
  std::unique_ptr<StreamEvent> copied;
  Tensor value, target;  // until the one, on the host, is copied to the other

  bool is_free() const { return !value && memory.use_count() == 1; }
};

FeedSender::FeedSender(Session& session) : memory_(&feed_memory(session)) {
  const auto gpus = gpus_of(session);
  if (gpus.size() != 1 || cpu_of(session) == nullptr) return;
  gpu_ = gpus.front();
  host_ = cpu_of(session);
}

FeedSender::~FeedSender() {
  constexpr int kMostErrors = 3;  // a GPU that is lost has no other answer
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  int errors = 0;
  for (auto& sent : sent_) {
    while (sent->value && errors < kMostErrors && std::chrono::steady_clock::now() < until) {
      try {
        if (!try_settle(*sent)) std::this_thread::sleep_for(std::chrono::microseconds(50));
      } catch (const std::exception& error) {
        ++errors;
        log_debug("a batch is on its way to a GPU that does not serve: {}", error.what());
      }
    }
    // A GPU that has failed, or does not answer, may still read and write there.
    if (sent->value) detail::keep_for_ever(std::move(sent));
  }
}

// True where nothing is on its way to its memory.
bool FeedSender::try_settle(Sent& sent) const {
  if (sent.value && gpu_->stream(StreamKind::in)->has_passed(*sent.copied))
    sent.value = sent.target = Tensor();
  return !sent.value;
}

void FeedSender::settle() {
  for (const auto& sent : sent_) try_settle(*sent);
}

std::shared_ptr<FeedSender::Sent> FeedSender::place_for(const Tensor& value) {
  for (const auto& sent : sent_)
    if (sent->is_free() && sent->memory->bytes() == value.bytes()) return sent;
  if (sent_.size() >= kMostKept) std::erase_if(sent_, [](const auto& sent) { return sent->is_free(); });
  const MemoryOwner owner("batches that are read ahead");
  auto made = std::make_shared<Sent>();
  const auto owned = std::make_shared<OwnedMemory>(gpu_, value.bytes());
  made->memory = {owned, &owned->memory};
  made->copied = gpu_->stream(StreamKind::in)->make_event();
  sent_.push_back(made);
  return made;
}

void FeedSender::put(const std::shared_ptr<Sent>& place) {
  Stream& stream = *gpu_->stream(StreamKind::in);
  try {
    stream.enqueue([gpu = gpu_.get(), host = host_.get(), sent = place.get()] {
      gpu->copy_from(*host, sent->value, sent->target);
    });
  } catch (...) {
    place->value = place->target = Tensor();  // nothing is on its way
    throw;
  }
  try {
    stream.record(*place->copied);
  } catch (...) {
    note_again(place);
    throw;
  }
}

// A call may fail alone, or as all do of a GPU that is lost.
void FeedSender::note_again(const std::shared_ptr<Sent>& place) {
  try {
    gpu_->stream(StreamKind::in)->record(*place->copied);
  } catch (const std::exception&) {
    std::erase(sent_, place);
    detail::keep_for_ever(place);
  }
}

Tensor FeedSender::sent(const Tensor& value) {
  if (gpu_ == nullptr || !has_room_ || value.dtype() == DType::string || value.bytes() == 0) return value;
  settle();
  std::shared_ptr<Sent> place;
  try {
    place = place_for(value);
  } catch (const ResourceExhaustedError& error) {
    log_warning("batches go to {} in their steps, since it has no room for those that are read ahead: {}",
                gpu_->local_name(), error.what());
    has_room_ = false;
    return value;
  }
  Tensor target(value.dtype(), value.shape(), place->memory, 0);
  place->value = value;
  place->target = target;
  put(place);
  return target;
}

}  // namespace kolo
