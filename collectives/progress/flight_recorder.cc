#include <kolo/collectives/progress/flight_recorder.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <utility>
#include <vector>

#include <kolo/core/base/json_text.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/stop_signal.h>

namespace kolo {
namespace {

using Seconds = std::chrono::duration<double>;

// Cut where it does not fit; always ends in a zero.
template <std::size_t kSize>
void copy_text(std::string_view text, std::array<char, kSize>& to) {
  const auto length = std::min(text.size(), kSize - 1);
  std::copy_n(text.begin(), length, to.begin());  // memcpy must not see the nullptr of an empty view
  to[length] = '\0';
}

// Microseconds: finer than any two hosts' clocks agree.
double seconds(FlightRecorder::Clock::time_point time) {
  return std::round(Seconds(time.time_since_epoch()).count() * 1e6) / 1e6;
}

}  // namespace

const char* name(OperationState state) {
  constexpr std::array<const char*, 4> kNames = {"submitted", "started", "finished", "failed"};
  return kNames[static_cast<std::size_t>(state)];
}

FlightRecorder::FlightRecorder(std::size_t capacity) : capacity_(capacity), records_(capacity) {}

void FlightRecorder::set_identity(Identity identity) {
  MutexLock lock(mutex_);
  identity_ = std::move(identity);
}

FlightRecorder::Record* FlightRecorder::find(Sequence operation) {
  const bool is_kept = operation < next_ && next_ - operation <= records_.size();
  return is_kept ? &records_[operation % records_.size()] : nullptr;
}

FlightRecorder::Record& FlightRecorder::add(const OperationDetails& details, Clock::time_point now) {
  Record& record = records_[next_ % records_.size()];
  copy_text(details.name, record.name);
  copy_text(details.kind, record.kind);
  copy_text(details.shape, record.shape);
  record.dtype = details.dtype;
  record.state = OperationState::submitted;
  record.process_set = details.process_set;
  record.channel = details.channel;
  record.ticket = details.ticket;
  record.bytes = details.bytes;
  record.submitted = now;
  ++next_;
  return record;
}

FlightRecorder::Sequence FlightRecorder::submitted(const OperationDetails& details,
                                                   std::chrono::nanoseconds ago) {
  const auto since = Clock::now() - std::chrono::duration_cast<Clock::duration>(ago);
  MutexLock lock(mutex_);
  add(details, since);
  return next_ - 1;
}

FlightRecorder::Sequence FlightRecorder::skip(std::size_t operations) {
  MutexLock lock(mutex_);
  return std::exchange(next_, next_ + operations);
}

void FlightRecorder::ended_at_once(const OperationDetails& details, std::chrono::nanoseconds took) {
  const auto now = Clock::now();
  MutexLock lock(mutex_);
  Record& record = add(details, now - std::chrono::duration_cast<Clock::duration>(took));
  record.state = OperationState::finished;
  record.started = record.submitted;
  record.ended = now;
  ++ended_;
}

void FlightRecorder::agreed(Sequence operation, int channel, std::int64_t ticket) {
  MutexLock lock(mutex_);
  if (Record* const record = find(operation)) {
    record->channel = channel;
    record->ticket = ticket;
  }
}

void FlightRecorder::started(std::span<const Sequence> operations) {
  const auto now = Clock::now();
  MutexLock lock(mutex_);
  for (const Sequence operation : operations)
    if (Record* const record = find(operation)) {
      record->state = OperationState::started;
      record->started = now;
    }
}

void FlightRecorder::finished(std::span<const Sequence> operations, bool failed) {
  const auto now = Clock::now();
  MutexLock lock(mutex_);
  ended_ += static_cast<std::int64_t>(operations.size());
  for (const Sequence operation : operations)
    if (Record* const record = find(operation)) {
      if (record->state == OperationState::submitted) record->started = now;
      record->state = failed ? OperationState::failed : OperationState::finished;
      record->ended = now;
    }
}

std::int64_t FlightRecorder::pending() const {
  MutexLock lock(mutex_);
  return static_cast<std::int64_t>(next_) - ended_;
}

std::int64_t FlightRecorder::ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

std::string FlightRecorder::json(std::string_view reason) const {
  using Json = nlohmann::ordered_json;
  MutexLock lock(mutex_);
  Json operations = Json::array();
  const Sequence kept = std::min<Sequence>(next_, records_.size());
  for (Sequence s = next_ - kept; s < next_; ++s) {
    const Record& record = records_[s % records_.size()];
    Json operation = {{"sequence", s},
                      {"channel", record.channel},
                      {"ticket", record.ticket},
                      {"name", record.name.data()},
                      {"kind", record.kind.data()},
                      {"process_set", record.process_set},
                      {"state", kolo::name(record.state)}};
    if (record.shape[0] != '\0') operation["shape"] = record.shape.data();
    if (record.bytes > 0) {
      operation["dtype"] = numpy_name(record.dtype);
      operation["bytes"] = record.bytes;
    }
    operation["submitted"] = seconds(record.submitted);
    if (record.state != OperationState::submitted) operation["started"] = seconds(record.started);
    if (record.state == OperationState::finished || record.state == OperationState::failed)
      operation["ended"] = seconds(record.ended);
    operations.push_back(std::move(operation));
  }
  const Json record = {{"rank", identity_.rank},
                       {"size", identity_.size},
                       {"host", identity_.host},
                       {"job", identity_.job},
                       {"reason", reason},
                       {"written", seconds(Clock::now())},
                       {"operations", std::move(operations)}};
  return json_text(record, 1);  // a name may be cut within a character
}

namespace {

namespace fs = std::filesystem;

// The same on all ranks of a host, and another for the next job.
fs::path folder_of_job() {
  const char* const job = std::getenv("OMPI_MCA_ess_base_jobid");
  return fs::temp_directory_path() /
         fmt::format("kolo-flight-{}", job != nullptr ? job : std::to_string(getppid()));
}

// Made, or this user's own already: where all may write, somebody else may have put a folder or a link of the
// same name.
bool make_own_folder(const fs::path& folder) {
  mkdir(folder.c_str(), S_IRWXU);
  struct stat found = {};
  return lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid() &&
         (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// To a file of another name first: a reader never meets half of one. No link is followed. Nothing is forced
// to the disk: a rank that writes this has not long to live.
bool write_file(const fs::path& path, const std::string& text) {
  const std::string unfinished = path.string() + ".unfinished";
  unlink(unfinished.c_str());
  const int file =
      open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return false;
  std::size_t written = 0;
  for (ssize_t count = 1; written < text.size() && count > 0;
       written += static_cast<std::size_t>(std::max<ssize_t>(count, 0)))
    count = ::write(file, text.data() + written, text.size() - written);
  close(file);
  if (written == text.size() && std::rename(unfinished.c_str(), path.c_str()) == 0) return true;
  unlink(unfinished.c_str());
  return false;
}

}  // namespace

std::string FlightRecorder::write(std::string_view reason) const noexcept {
  try {
    Identity identity;
    {
      MutexLock lock(mutex_);
      if (next_ == 0) return "";
      identity = identity_;
    }
    const std::string text = json(reason) + "\n";
    const fs::path temporary = identity.folder.empty() ? folder_of_job() : "";
    for (const fs::path& folder :
         {fs::path(identity.folder.empty() ? record_folder() : identity.folder), temporary}) {
      if (folder.empty() || (folder == temporary && !make_own_folder(folder))) continue;
      std::error_code ignored;
      if (folder != temporary) fs::create_directories(folder, ignored);
      const fs::path path = folder / fmt::format("kolo-flight.{}.json", identity.rank);
      if (write_file(path, text)) return path.string();
    }
  } catch (...) {  // memory that is gone must not end a rank that is about to say why it ends
  }
  return "";
}

}  // namespace kolo

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 300ms;

}  // namespace

RecordOnSignal::RecordOnSignal(FlightRecorder& recorder, std::function<void()> before_end)
    : recorder_(recorder), before_end_(std::move(before_end)) {
  install_record_signals();
}

RecordOnSignal::~RecordOnSignal() { remove_record_signals(); }

void RecordOnSignal::poll() {
  if (take_record_request()) {
    const std::string path = recorder_.write("SIGUSR2");
    if (!path.empty()) log_info("flight record: {}", path);
  }
  if (sigterm_received()) {
    if (recorder_.pending() > 0) recorder_.write("SIGTERM");
    if (before_end_) before_end_();
    end_by_sigterm();
  }
  if (stop_signal_received()) watch_the_stop();
  else stop_ = Stop::none;
}

void RecordOnSignal::watch_the_stop() {
  const auto now = Clock::now();
  if (stop_ == Stop::none) {
    stop_ = Stop::watched;
    stop_seen_ = now;
    ended_ = recorder_.ended();
  }
  if (stop_ == Stop::settled || now - stop_seen_ < kPatience) return;
  if (recorder_.pending() > 0 && recorder_.ended() == ended_) recorder_.write("asked to stop");
  stop_ = Stop::settled;
}

}  // namespace kolo::detail
