#include <kolo/launcher/rank_pipes.h>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <kolo/core/base/error.h>

namespace kolo::launcher {
namespace {

OwnedFd make_rank_pipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw ResourceExhaustedError("cannot make a pipe for the output of a rank: {} (ulimit -n?)",
                                 std::strerror(errno));
  const OwnedFd reader(ends[0]), writer(ends[1]);
  // Opened for both: the pipe then never ends in between two writers, and the first writer need not wait.
  OwnedFd both(open(fmt::format("/proc/self/fd/{}", ends[0]).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (both.get() < 0)
    throw ResourceExhaustedError("cannot open a pipe for the output of a rank: {}", std::strerror(errno));
  return both;
}

}  // namespace

RankPipes::RankPipes(int ranks) {
  for (int rank = 0; rank < ranks; ++rank)
    for (const Stream stream : {Stream::out, Stream::err})
      sources_.push_back({rank, stream, make_rank_pipe()});
}

std::vector<std::string> RankPipes::redirect(const std::vector<std::string>& program) const {
  std::string pipes;
  for (const Source& source : sources_) pipes += fmt::format("/proc/{}/fd/{} ", getpid(), source.fd.get());
  // 3 keeps mpirun's own pipe open: once both of its pipes are closed it forwards no stdin to the rank any
  // more.
  std::vector<std::string> command = {"/bin/sh", "-c",
                                      "i=$((2 * OMPI_COMM_WORLD_RANK))\n"
                                      "for pipe in $0; do\n"
                                      "  case $i in 0) out=$pipe ;; -1) err=$pipe ;; esac\n"
                                      "  i=$((i - 1))\n"
                                      "done\n"
                                      "exec \"$@\" 3>&1 >\"$out\" 2>\"$err\"",
                                      pipes};
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

}  // namespace kolo::launcher
