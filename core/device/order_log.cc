#include <kolo/core/device/order_log.h>

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>

namespace kolo {
namespace {

std::string text_of(const std::vector<OrderLog::Range>& ranges) {
  std::string text;
  for (const OrderLog::Range& range : ranges)
    if (range.bytes > 0)
      text += fmt::format("{}{}+{}", text.empty() ? "" : " ", fmt::ptr(range.begin), range.bytes);
  return text;
}

std::atomic<OrderLog*>& current() {
  static std::atomic<OrderLog*> log{nullptr};
  return log;
}

}  // namespace

OrderLog* OrderLog::active() {
  static const bool asked = [] {
    if (const auto file = env_string("KOLO_CUDA_LOG"); file && !file->empty())
      open(process().size > 1 ? fmt::format("{}.{}", *file, process().rank) : *file);
    return true;
  }();
  static_cast<void>(asked);
  return current().load();
}

void OrderLog::open(const std::string& file) { current().store(new OrderLog(file)); }

void OrderLog::close() { delete current().exchange(nullptr); }

std::string OrderLog::this_thread() {
  static std::atomic<int> threads{0};
  thread_local const int number = ++threads;
  return fmt::format("thread {}", number);
}

OrderLog::OrderLog(const std::string& file) : file_(std::fopen(file.c_str(), "w")) {
  if (file_ == nullptr) throw NotFoundError("{} cannot be written: {}", file, std::strerror(errno));
}

void OrderLog::use(const std::string& actor, const std::string& name, const std::vector<Range>& reads,
                   const std::vector<Range>& writes) {
  write(
      fmt::format("use\t{}\t{}\t{}\t{}\t{}\n", actor, this_thread(), name, text_of(reads), text_of(writes)));
}

void OrderLog::record(const std::string& actor, const std::string& token) {
  write(fmt::format("record\t{}\t{}\n", actor, token));
}

void OrderLog::wait(const std::string& actor, const std::string& tokens) {
  write(fmt::format("wait\t{}\t{}\n", actor, tokens));
}

void OrderLog::begin(const std::string& tokens) {
  write(fmt::format("begin\t{}\t{}\n", this_thread(), tokens));
}

void OrderLog::free(Range range) { write(fmt::format("free\t{}\t{}\n", this_thread(), text_of({range}))); }

void OrderLog::write(const std::string& line) {
  MutexLock lock(mutex_);
  std::fputs(line.c_str(), file_.get());
}

}  // namespace kolo
