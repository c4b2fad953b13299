#include <kolo/core/base/process.h>

#include <unistd.h>

#include <utility>

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

}  // namespace

const ProcessInfo& process() { return current(); }

void set_process(ProcessInfo found) {
  if (found.hostname.empty()) found.hostname = current().hostname;
  current() = std::move(found);
}

}  // namespace kolo
