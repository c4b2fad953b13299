// The alarm of kolo::init, which runs beside MPI_Init.
#include <kolo/collectives/job/init_alarm.h>

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>

#include "tests/support/said.h"

namespace {

std::atomic<bool> counts{false};
std::atomic<int> reads_beside{0};  // of the environment, by threads other than the first

}  // namespace

// In place of the C library's, for this program and all libraries that it loads.
extern "C" char* getenv(const char* name) noexcept {
  if (counts && gettid() != getpid()) ++reads_beside;
  const std::size_t length = std::strlen(name);
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  return nullptr;
}

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;

// MPI_Init moves the environment: one start in some thousands ended with SIGSEGV.
TEST(InitAlarm, DoesNotReadTheEnvironmentBesideMpi) {
  ::testing::internal::CaptureStderr();
  {
    const InitAlarm alarm({.warning = 0.05s, .abort = 0s});
    counts = true;
    EXPECT_TRUE(is_said("init: waiting for the other ranks for 0.05 s"));
    counts = false;
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("init: waiting for the other ranks for 0.05 s"));
  EXPECT_EQ(reads_beside, 0);
}

}  // namespace
}  // namespace kolo::detail
