#include <kolo/core/summary/summary_writer.h>

#include <unistd.h>

#include <array>
#include <exception>
#include <filesystem>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/file_error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/summary/record_file.h>

#include "event_encoding_internal.h"

namespace kolo {
namespace {

constexpr char kFileVersion[] = "brain.Event:2";
constexpr char kClosed[] =
    "Attempting to use a closed FileWriter. The operation will be a noop unless the FileWriter is explicitly "
    "reopened.";

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

event::Event event_at(std::optional<std::int64_t> step) {
  event::Event event;
  event.set_wall_time(seconds_since_1970());
  if (step) event.set_step(*step);
  return event;
}

}  // namespace

class SummaryWriter::Impl {
 public:
  Impl(const std::string& logdir, SummaryWriterOptions options) : options_(std::move(options)) {
    if (options_.flush_secs < 0)
      throw InvalidArgumentError("flush_secs is {}; it must not be below 0", options_.flush_secs);
    std::error_code error;
    std::filesystem::create_directories(logdir, error);
    if (error) throw_file_error("make the folder of events " + logdir, error.value());
    prefix_ = (std::filesystem::path(logdir) / "events.out.tfevents.").string();
  }

  std::string path() const KOLO_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return file_ ? file_->path() : "";
  }

  void add_summary(event::Event event) KOLO_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (event::Summary::Value& value : *event.mutable_summary()->mutable_value())
      if (value.has_metadata() && !is_closed_ && !tags_.insert(value.tag()).second) value.clear_metadata();
    write(event);
  }

  void add_run_metadata(const event::Event& event) KOLO_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!run_tags_.insert(event.tagged_run_metadata().tag()).second)
      throw InvalidArgumentError("The provided tag was already used for this event type: \"{}\"",
                                 event.tagged_run_metadata().tag());
    write(event);
  }

  void add(const event::Event& event) KOLO_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    write(event);
  }

  void flush() KOLO_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (is_closed_) return log_warning("{}", kClosed);
    if (file_) write_waiting();
  }

  void close() KOLO_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (file_) write_waiting();
    file_.reset();
    is_closed_ = true;
  }

  void reopen() KOLO_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    is_closed_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void write(const event::Event& event) KOLO_REQUIRES(mutex_) {
    if (is_closed_) return log_warning("{}", kClosed);
    if (!file_) begin_file();
    file_->append(event.SerializeAsString());
    ++waiting_;
    const std::chrono::duration<double> since_flush = Clock::now() - last_flush_;
    if (waiting_ > options_.max_queue || since_flush.count() >= options_.flush_secs) write_waiting();
  }

  void begin_file() KOLO_REQUIRES(mutex_) {
    file_ = std::make_unique<detail::RecordFile>(
        prefix_ + fmt::format("{:010}.{}{}", static_cast<std::int64_t>(seconds_since_1970()), host_name(),
                              options_.filename_suffix));
    event::Event first = event_at({});
    first.set_file_version(kFileVersion);
    file_->append(first.SerializeAsString());
    last_flush_ = Clock::now();
  }

  void write_waiting() KOLO_REQUIRES(mutex_) {
    file_->flush();
    waiting_ = 0;
    last_flush_ = Clock::now();
  }

  const SummaryWriterOptions options_;
  std::string prefix_;
  mutable Mutex mutex_;
  std::unique_ptr<detail::RecordFile> file_ KOLO_GUARDED_BY(mutex_);
  std::size_t waiting_ KOLO_GUARDED_BY(mutex_) = 0;
  Clock::time_point last_flush_ KOLO_GUARDED_BY(mutex_);
  bool is_closed_ KOLO_GUARDED_BY(mutex_) = false;
  // What a plug-in is told of a tag stands in its first summary alone.
  std::set<std::string> tags_ KOLO_GUARDED_BY(mutex_);
  std::set<std::string> run_tags_ KOLO_GUARDED_BY(mutex_);
};

SummaryWriter::SummaryWriter(std::string logdir, SummaryWriterOptions options)
    : logdir_(std::move(logdir)), impl_(std::make_unique<Impl>(logdir_, std::move(options))) {}

SummaryWriter::SummaryWriter(std::string logdir, const Graph& graph, SummaryWriterOptions options)
    : SummaryWriter(std::move(logdir), std::move(options)) {
  add_graph(graph);
}

SummaryWriter::~SummaryWriter() {
  try {
    impl_->close();
  } catch (const std::exception& error) {
    log_error("closing the events of {} failed: {}", logdir_, error.what());
  }
}

std::string SummaryWriter::path() const { return impl_->path(); }

void SummaryWriter::add_summary(const SummaryBytes& summary, std::optional<std::int64_t> step) {
  event::Event event = event_at(step);
  if (!event.mutable_summary()->ParseFromString(summary))
    throw InvalidArgumentError("add_summary: {} bytes that are no serialised summary", summary.size());
  impl_->add_summary(std::move(event));
}

void SummaryWriter::add_summary(const Tensor& summary, std::optional<std::int64_t> step) {
  add_summary(summary.value<std::string>(), step);
}

void SummaryWriter::add_graph(const Graph& graph, std::optional<std::int64_t> step) {
  event::Event event = event_at(step);
  event.set_graph_def(detail::encode_graph(graph).SerializeAsString());
  impl_->add(event);
}

void SummaryWriter::add_session_log(SessionStatus status, std::optional<std::int64_t> step,
                                    const std::string& checkpoint_path) {
  event::Event event = event_at(step);
  event.mutable_session_log()->set_status(static_cast<event::SessionLog::SessionStatus>(status));
  event.mutable_session_log()->set_checkpoint_path(checkpoint_path);
  impl_->add(event);
}

void SummaryWriter::add_run_metadata(std::string_view run_metadata, const std::string& tag,
                                     std::optional<std::int64_t> step) {
  event::Event event = event_at(step);
  event.mutable_tagged_run_metadata()->set_tag(tag);
  event.mutable_tagged_run_metadata()->set_run_metadata(std::string(run_metadata));
  impl_->add_run_metadata(event);
}

void SummaryWriter::add_event(std::string_view event) {
  event::Event parsed;
  if (!parsed.ParseFromString(std::string(event)))
    throw InvalidArgumentError("add_event: {} bytes that are no serialised event", event.size());
  impl_->add(parsed);
}

void SummaryWriter::flush() { impl_->flush(); }
void SummaryWriter::close() { impl_->close(); }
void SummaryWriter::reopen() { impl_->reopen(); }

}  // namespace kolo
