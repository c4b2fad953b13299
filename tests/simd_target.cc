// Linked into the tests of what is compiled once for each instruction set: KOLO_TEST_SIMD names Highway's
// target that everything is to use. The test is skipped (exit code 77) where the processor, or the build,
// lacks it.
#include <hwy/targets.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

bool force_target() {
  const char* const wanted = std::getenv("KOLO_TEST_SIMD");
  if (wanted == nullptr) return false;
  for (std::int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    if (hwy::TargetName(target) != std::string(wanted)) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    std::printf("instruction set: %s\n", wanted);
    return true;
  }
  std::printf("this machine has no %s\n", wanted);
  std::exit(77);
}

const bool forced = force_target();

}  // namespace
