#include <kolo/core/device/stream.h>

#include <utility>

#include <kolo/core/base/thread_pool.h>

namespace kolo {
namespace {

class ThreadStream final : public Stream {
 public:
  explicit ThreadStream(const std::string& name) : thread_(name, 1) {}
  void enqueue(std::function<void()> work) override { thread_.schedule(std::move(work)); }
  void when_done(Done done) override {
    thread_.schedule([done = std::move(done)] { done(nullptr); });
  }

 private:
  ThreadPool thread_;
};

}  // namespace

std::unique_ptr<Stream> make_thread_stream(const std::string& name) {
  return std::make_unique<ThreadStream>(name);
}

}  // namespace kolo
