#include <kolo/launcher/host_list.h>

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <kolo/core/base/error.h>
#include <kolo/launcher/rank_starter.h>

namespace kolo::launcher {

std::optional<HostList> HostList::of(const Options& options, const Surroundings& found) {
  constexpr size_t kMostOnCommandLine = 32;
  if (options.hosts.size() <= kMostOnCommandLine || !options.hostfile.empty()) return std::nullopt;
  return HostList(starter_of(options.launcher).host_lines(options, found));
}

HostList::HostList(const std::string& lines) : fd_(memfd_create("kolorun hosts", MFD_CLOEXEC)) {
  size_t written = 0;
  for (ssize_t count; fd_.get() >= 0 && written < lines.size(); written += count)
    if ((count = write(fd_.get(), lines.data() + written, lines.size() - written)) <= 0) break;
  if (written < lines.size())
    throw ResourceExhaustedError("cannot keep the list of hosts in memory: {}", std::strerror(errno));
  path_ = fmt::format("/proc/{}/fd/{}", getpid(), fd_.get());
}

}  // namespace kolo::launcher
