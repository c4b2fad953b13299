#include "streams.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "calls.h"
#include "memory.h"

namespace kolo::fake_cuda {
namespace {

struct FakeStream {
  int gpu = 0;
  bool alive = true;
  std::optional<Work> captured = {};               // while it captures
  std::deque<std::function<bool()>> waiting = {};  // false: not done yet
  std::uint64_t given = 0, done = 0;
};

// A place in a stream: what an event was recorded behind.
struct Mark {
  std::shared_ptr<FakeStream> stream;
  std::uint64_t place = 0;
};

struct FakeEvent {
  int gpu = 0;
  bool is_timed = false;
  bool alive = true;
  std::optional<Mark> mark = {};
};

// Ended ones are kept: their address shall not be another's, so that later use is seen.
struct All {
  std::map<const void*, std::shared_ptr<FakeStream>> streams;
  std::map<const void*, std::shared_ptr<FakeEvent>> events;
};
All& all() {
  static auto* const made = new All;
  return *made;
}

template <typename T>
const std::shared_ptr<T>& alive(const std::map<const void*, std::shared_ptr<T>>& known, const void* handle,
                                const char* kind) {
  const auto found = known.find(handle);
  if (found == known.end()) report("{} is no {}", handle, kind);
  if (!found->second->alive) report("the {} has been destroyed before", kind);
  return found->second;
}
template <typename T>
const std::shared_ptr<T>& current(const std::shared_ptr<T>& handle, const char* kind) {
  if (handle->gpu != current_gpu())
    report("the {} is of GPU {}, but GPU {} is current", kind, handle->gpu, current_gpu());
  return handle;
}
const std::shared_ptr<FakeStream>& stream_of(cudaStream_t stream) {
  return current(alive(all().streams, stream, "stream"), "stream");
}
const std::shared_ptr<FakeEvent>& event_of(cudaEvent_t event) {
  return current(alive(all().events, event, "event"), "event");
}

const Mark& mark_of(const FakeEvent& event) {
  if (!event.mark) report("the event that is asked for was never recorded");
  return *event.mark;
}

// False where others must help first.
bool advance_to(FakeStream& stream, std::uint64_t place) {
  while (stream.done < place) {
    if (!context_is_lost() && !stream.waiting.front()()) return false;
    stream.waiting.pop_front();
    ++stream.done;
  }
  return true;
}

// As CUDA does, for as long as it takes; other threads may go on meanwhile.
KOLO_THREAD_ANNOTATION(no_thread_safety_analysis)
void run_to(const std::shared_ptr<FakeStream>& stream, std::uint64_t place, bool is_event = false) {
  while (!advance_to(*stream, place)) {
    // A thread that sleeps for an event may do so for ever.
    if (breaks("hang") && !is_event) report("the call waits for a GPU that hangs");
    state_mutex().unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    state_mutex().lock();
  }
}

void give(FakeStream& stream, std::function<bool()> work) {
  stream.waiting.push_back(std::move(work));
  ++stream.given;
}

}  // namespace

cudaStream_t make_stream(int gpu) {
  const auto made = std::make_shared<FakeStream>(FakeStream{.gpu = gpu});
  all().streams[made.get()] = made;
  return reinterpret_cast<cudaStream_t>(made.get());
}

// The current device plays no part in the end of streams and events.
void end_stream(cudaStream_t stream) {
  const auto ended = alive(all().streams, stream, "stream");
  run_to(ended, ended->given);
  ended->alive = false;
}

void check_stream(cudaStream_t stream) { stream_of(stream); }
void enqueue(cudaStream_t stream, std::function<void()> work) {
  if (auto& captured = stream_of(stream)->captured) return captured->push_back(std::move(work));
  give(*stream_of(stream), [work = std::move(work)] { return work(), true; });
}
void enqueue_until(cudaStream_t stream, std::function<bool()> work) {
  if (stream_of(stream)->captured) report("it cannot be captured");
  give(*stream_of(stream), std::move(work));
}
bool is_idle(cudaStream_t stream) { return stream_of(stream)->waiting.empty(); }
void advance(cudaStream_t stream) { advance_to(*stream_of(stream), stream_of(stream)->given); }
void finish(cudaStream_t stream) { run_to(stream_of(stream), stream_of(stream)->given); }
void finish_all(int gpu) {
  for (const auto& [handle, stream] : all().streams)
    if (stream->gpu == gpu) run_to(stream, stream->given);
}

namespace {
thread_local int captures_of_thread = 0;
}

void begin_capture(cudaStream_t stream) {
  FakeStream& captures = *stream_of(stream);
  if (captures.captured) report("the stream captures already");
  if (!captures.waiting.empty()) report("the stream that captures has work to do");
  captures.captured.emplace();
  ++captures_of_thread;
}

bool is_capturing(cudaStream_t stream) { return stream_of(stream)->captured.has_value(); }

Work end_capture(cudaStream_t stream) {
  FakeStream& captures = *stream_of(stream);
  if (!captures.captured) report("the stream does not capture");
  --captures_of_thread;
  Work work = *std::exchange(captures.captured, std::nullopt);
  if (breaks("graph") && !work.empty()) work.pop_back();
  return work;
}

void check_not_capturing() {
  if (captures_of_thread > 0) report("the call is not allowed while this thread captures");
}

cudaEvent_t make_event(int gpu, bool timed) {
  const auto made = std::make_shared<FakeEvent>(FakeEvent{.gpu = gpu, .is_timed = timed});
  all().events[made.get()] = made;
  return reinterpret_cast<cudaEvent_t>(made.get());
}

// What waits for it keeps its mark.
void end_event(cudaEvent_t event) { alive(all().events, event, "event")->alive = false; }

void record(cudaEvent_t event, cudaStream_t stream) {
  const auto& recorded = stream_of(stream);
  if (recorded->captured) report("an event is recorded in a stream that captures");
  event_of(event)->mark = {recorded, recorded->given};
}

bool has_passed(cudaEvent_t event) {
  const Mark& mark = mark_of(*event_of(event));
  return mark.stream->done >= mark.place;
}

void advance_to(cudaEvent_t event) {
  const Mark& mark = mark_of(*event_of(event));
  advance_to(*mark.stream, mark.place);
}

void finish_event(cudaEvent_t event) {
  const Mark mark = mark_of(*event_of(event));
  run_to(mark.stream, mark.place, /*is_event=*/true);
}

void check_timed(cudaEvent_t event) {
  const FakeEvent& asked = *alive(all().events, event, "event");
  if (!asked.is_timed) report("the event was made without a time");
  mark_of(asked);
}

void wait_for(cudaStream_t stream, cudaEvent_t event) {
  const Mark& mark = mark_of(*alive(all().events, event, "event"));  // of any GPU
  if (stream_of(stream)->captured) report("a stream that captures waits for an event of outside");
  if (breaks("wait")) return;
  give(*stream_of(stream), [mark] { return advance_to(*mark.stream, mark.place); });
}

std::string streams_left() {
  int streams = 0, events = 0;
  for (const auto& [handle, stream] : all().streams) streams += stream->alive ? 1 : 0;
  for (const auto& [handle, event] : all().events) events += event->alive ? 1 : 0;
  return streams + events == 0 ? "" : fmt::format(" {} streams, {} events", streams, events);
}

namespace {
[[maybe_unused]] const bool asked = ask_at_the_end(streams_left);
[[maybe_unused]] const bool finishes = finish_before_failures([] {
  for (const auto& [handle, stream] : all().streams) advance_to(*stream, stream->given);
});
}  // namespace

}  // namespace kolo::fake_cuda
