// A rank as kolorun sees it: "ready <pid>", then waits for a request to stop as a training does, and says
// what came.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <kolo/core/base/stop_signal.h>

int main(int argc, char** argv) {
  kolo::install_stop_signals();
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (argc > 1) kolo::report_completed_step(std::atoi(argv[1]) + std::atoi(rank == nullptr ? "0" : rank));
  std::printf("ready %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  while (!kolo::stop_signal_received()) poll(nullptr, 0, 20);
  std::printf("saved\n");
  return 0;
}
