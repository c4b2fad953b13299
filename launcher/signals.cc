#include <kolo/launcher/signals.h>

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <kolo/core/base/error.h>

namespace kolo::launcher {

SignalQueue::SignalQueue() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&taken, number);
  sigprocmask(SIG_BLOCK, &taken, nullptr);
  signal(SIGPIPE, SIG_IGN);
  fd_ = OwnedFd(signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
  if (fd_.get() < 0) throw ResourceExhaustedError("cannot wait for signals: {}", std::strerror(errno));
}

std::optional<int> SignalQueue::next() {
  signalfd_siginfo info;
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace kolo::launcher
