// check_order FILE: what the order checker has to say about a log, a line each; exit code 1 if anything.
#include <cstdio>
#include <exception>

#include <tests/support/order_checker.h>

int main(int argc, char** argv) try {
  if (argc != 2) return std::fputs("usage: check_order FILE\n", stderr), 2;
  const auto found = kolo::testing::conflicts(kolo::testing::read_log_file(argv[1]));
  for (const auto& conflict : found) std::printf("%s\n", conflict.c_str());
  return found.empty() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "check_order: %s\n", error.what());
  return 2;
}
