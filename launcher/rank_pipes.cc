#include <kolo/launcher/rank_pipes.h>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <kolo/core/base/error.h>

namespace kolo::launcher {
namespace {

std::string make_folder() {
  const char* base = std::getenv("TMPDIR");
  std::string folder = fmt::format("{}/kolorun-XXXXXX", base != nullptr && *base != '\0' ? base : "/tmp");
  if (mkdtemp(folder.data()) == nullptr)
    throw UnavailableError("cannot make the folder {}: {}; TMPDIR must name a folder that can be written",
                           folder, std::strerror(errno));
  return folder;
}

OwnedFd make_fifo(const std::string& path) {
  // Opened for both: the pipe then never ends in between two writers, and the first writer need not wait.
  OwnedFd fd(mkfifo(path.c_str(), 0600) == 0 ? open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC) : -1);
  if (fd.get() < 0) throw UnavailableError("cannot make the pipe {}: {}", path, std::strerror(errno));
  return fd;
}

}  // namespace

RankPipes::RankPipes(int ranks) : folder_(make_folder()) {
  try {
    for (int rank = 0; rank < ranks; ++rank) {
      sources_.push_back({rank, Stream::out, make_fifo(fmt::format("{}/{}.out", folder_, rank))});
      sources_.push_back({rank, Stream::err, make_fifo(fmt::format("{}/{}.err", folder_, rank))});
    }
  } catch (const UnavailableError&) {
    std::error_code ignored;  // the first error is the one to tell
    std::filesystem::remove_all(folder_, ignored);
    throw;
  }
}

RankPipes::~RankPipes() {
  std::error_code ignored;  // a folder left behind in /tmp is no reason to fail a job
  std::filesystem::remove_all(folder_, ignored);
}

std::vector<std::string> RankPipes::redirect(const std::vector<std::string>& program) const {
  // 3 keeps mpirun's own pipe open: once both of its pipes are closed it forwards no stdin to the rank any
  // more.
  std::vector<std::string> command = {
      "/bin/sh", "-c",
      "exec \"$@\" 3>&1 >\"$0/$OMPI_COMM_WORLD_RANK.out\" 2>\"$0/$OMPI_COMM_WORLD_RANK.err\"", folder_};
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

}  // namespace kolo::launcher
