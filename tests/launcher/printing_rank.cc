// A user's program that prints a line, does not flush it, and then trains for long.
#include <poll.h>

#include <cstdio>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/stop_signal.h>

int main(int argc, char** argv) {
  kolo::init(&argc, &argv);
  kolo::install_stop_signals();
  std::printf("epoch 1\n");
  while (!kolo::stop_signal_received()) poll(nullptr, 0, 20);
}
