#include <kolo/core/base/process.h>

#include <unistd.h>

#include <utility>

#include <kolo/core/base/mutex.h>

namespace kolo {
namespace {

ProcessInfo alone() {
  ProcessInfo info;
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  info.hostname = host;
  return info;
}

// Never destroyed: the exit handler of init() still reads it.
ProcessInfo& current() {
  static auto* const info = new ProcessInfo(alone());
  return *info;
}

struct RecordFolder {
  Mutex mutex;
  std::string path KOLO_GUARDED_BY(mutex);
};

RecordFolder& records() {
  static auto* const folder = new RecordFolder;
  return *folder;
}

}  // namespace

const ProcessInfo& process() { return current(); }

void set_process(ProcessInfo found) {
  if (found.hostname.empty()) found.hostname = current().hostname;
  current() = std::move(found);
}

std::string record_folder() {
  MutexLock lock(records().mutex);
  return records().path;
}

void propose_record_folder(const std::string& folder) {
  MutexLock lock(records().mutex);
  if (records().path.empty()) records().path = folder;
}

}  // namespace kolo
