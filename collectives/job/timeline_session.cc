#include <kolo/collectives/job/timeline_session.h>

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/communicator.h>
#include <kolo/collectives/progress/clock_offset.h>
#include <kolo/collectives/progress/timeline.h>
#include <kolo/collectives/transport/mpi.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto kExitPatience = 5s;
constexpr char kLabel[] = "the timeline";

std::span<std::byte> writable_bytes(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}

/// Every rank's text on rank 0: lengths first.
class TextGather final : public Collective {
 public:
  TextGather(Communicator& communicator, std::string own)
      : communicator_(communicator), own_(std::move(own)), lengths_(communicator.size()) {}

  void start() override {
    lengths_[communicator_.rank()] = static_cast<std::int64_t>(own_.size());
    std::vector<std::span<std::byte>> blocks;
    for (auto& length : lengths_) blocks.push_back(std::as_writable_bytes(std::span(&length, 1)));
    stage_ = communicator_.allgather(blocks);
    stage_->start();
  }
  Progress progress() override {
    const Progress progress = stage_->progress();
    if (progress != Progress::finished || !texts_.empty()) return progress;
    gather_texts();
    return Progress::advanced;
  }
  /// On rank 0, in rank order, once it has finished.
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  void gather_texts() {
    std::vector<std::span<std::byte>> blocks;
    for (const auto length : lengths_) texts_.emplace_back(communicator_.rank() == 0 ? length : 0, ' ');
    if (communicator_.rank() == 0)
      for (auto& text : texts_) blocks.push_back(writable_bytes(text));
    stage_ = communicator_.gather(std::as_bytes(std::span(own_)), blocks, 0);
    stage_->start();
  }

  Communicator& communicator_;
  const std::string own_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::string> texts_;
  std::shared_ptr<Collective> stage_;
};

/// Its network must live as long as its messages may.
class ClockOffsetOverMpi final : public Collective {
 public:
  explicit ClockOffsetOverMpi(MPI_Comm comm) : network_(comm), offset_(network_) {}
  void start() override { offset_.start(); }
  Progress progress() override { return offset_.progress(); }
  ClockOffset::Nanoseconds offset() const { return offset_.offset(); }

 private:
  MpiPointToPoint network_;
  ClockOffset offset_;
};

void write_file(const std::string& path, const std::vector<std::string>& parts) {
  std::ofstream file(path, std::ios::trunc);
  file << "{\"traceEvents\":[\n";
  for (std::size_t i = 0; i < parts.size(); ++i) file << (i == 0 ? "" : ",\n") << parts[i];
  file << "\n],\"displayTimeUnit\":\"ms\"}\n";
  file.close();
  if (file) log_info("timeline: {}", path);
  else log_warning("the timeline {} cannot be written", path);
}

std::string own_events(const Runtime& runtime, const Timeline& timeline) {
  return timeline.events_json(runtime.process().rank, runtime.process().hostname);
}

// On the communication thread, when it runs no operations any more. together: all ranks are here; else, or
// where they do not come within some seconds, this rank writes its own events.
void end_timeline_at_exit(Runtime& runtime, bool together) {
  const auto timeline = runtime.thread().take_timeline();
  if (!timeline) return;
  const int rank = runtime.process().rank;
  const std::string own = own_events(runtime, *timeline);
  if (together) {
    TextGather gather(runtime.world(), own);
    const auto deadline = Timeline::Clock::now() + kExitPatience;
    gather.start();
    while (gather.progress() != Progress::finished) {
      if (Timeline::Clock::now() > deadline) {
        together = false;
        break;
      }
      std::this_thread::sleep_for(50us);
    }
    if (together && rank == 0) write_file(timeline->path(), gather.texts());
  }
  if (!together) write_file(fmt::format("{}.{}", timeline->path(), rank), {own});
}

}  // namespace

void begin_timeline(Runtime& runtime, const std::string& path) {
  auto& thread = runtime.thread();
  const auto offset = std::make_shared<ClockOffsetOverMpi>(runtime.world().comm());
  thread.run(kControlChannel, offset, kLabel);
  // Rank 0's time, by this rank's clock.
  const auto now = std::make_shared<std::int64_t>(Timeline::Clock::now().time_since_epoch().count());
  thread.run(kControlChannel, runtime.world().broadcast(std::as_writable_bytes(std::span(now.get(), 1)), 0),
             kLabel);
  const auto origin = Timeline::Clock::time_point(Timeline::Clock::duration(*now)) + offset->offset();
  thread.call([&] {
    thread.set_timeline(std::make_shared<Timeline>(path, origin));
    runtime.at_leave([&runtime](bool together) { end_timeline_at_exit(runtime, together); });
  });
}

void end_timeline(Runtime& runtime) {
  auto& thread = runtime.thread();
  std::shared_ptr<Timeline> timeline;
  thread.call([&] { timeline = thread.take_timeline(); });
  if (!timeline) return;
  const auto gather = std::make_shared<TextGather>(runtime.world(), own_events(runtime, *timeline));
  thread.run(kControlChannel, gather, kLabel);
  if (runtime.process().rank == 0) write_file(timeline->path(), gather->texts());
}

}  // namespace kolo::detail

namespace kolo {
namespace {

std::shared_ptr<detail::Runtime> initialised_runtime() {
  auto runtime = detail::current_runtime();
  if (!runtime) throw FailedPreconditionError("kolo is not initialised; call kolo::init() first");
  return runtime;
}

}  // namespace

void start_timeline(const std::string& path) {
  const auto runtime = initialised_runtime();
  if (!runtime->has_peers()) return;  // one rank has no communication
  bool is_recording = false;
  runtime->thread().call([&] { is_recording = runtime->thread().timeline() != nullptr; });
  if (is_recording)
    throw FailedPreconditionError(
        "start_timeline(\"{}\"): a timeline is being recorded; stop_timeline() first", path);
  detail::begin_timeline(*runtime, path);
}

void stop_timeline() {
  const auto runtime = initialised_runtime();
  if (runtime->has_peers()) detail::end_timeline(*runtime);
}

}  // namespace kolo
