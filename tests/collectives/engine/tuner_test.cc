#include <kolo/collectives/engine/tuner.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "tests/core/training/temporary_directory.h"

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;
using testing::MatchesRegex;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// A training loop whose steps take what `seconds` says of the setting in use.
class Loop {
 public:
  explicit Loop(const EngineOptions& options, const std::string& log = "")
      : tuner_(options, log), setting_{options.fusion_bytes, options.cycle_time.count()} {}

  // Returns the setting in the end.
  Tuning train(const std::function<double(const Tuning&)>& seconds) {
    for (int step = 0; step < 10'000 && !tuner_.is_frozen(); ++step) {
      for (const char* name : {"a", "b", "c"})
        if (const auto next = tuner_.executed(name, 1000, now_)) {
          setting_ = *next;
          ++switches_;
        }
      now_ += std::chrono::duration_cast<Tuner::Clock::duration>(
          std::chrono::duration<double>(seconds(setting_)));
    }
    return setting_;
  }
  bool is_frozen() const { return tuner_.is_frozen(); }
  int switches() const { return switches_; }

 private:
  Tuner tuner_;
  Tuning setting_;
  Tuner::Clock::time_point now_{1h};
  int switches_ = 0;
};

TEST(Tuner, FindsTheBestOfBothOptions) {
  Loop loop{EngineOptions()};
  const auto best = loop.train([](const Tuning& setting) {
    return 0.01 + std::abs(std::log2(static_cast<double>(setting.fusion_bytes) / (4 * kMiB))) +
           std::abs(std::log2(setting.cycle_ms / 0.25));
  });
  EXPECT_TRUE(loop.is_frozen());
  EXPECT_EQ(best.fusion_bytes, 4 * kMiB);
  EXPECT_EQ(best.cycle_ms, 0.25);
}

TEST(Tuner, StaysWithTheBeginningWhereNothingIsBetter) {
  Loop loop{EngineOptions()};
  const auto best = loop.train([](const Tuning&) { return 0.01; });
  EXPECT_TRUE(loop.is_frozen());
  EXPECT_EQ(best.fusion_bytes, EngineOptions().fusion_bytes);
  EXPECT_EQ(best.cycle_ms, EngineOptions().cycle_time.count());
}

TEST(Tuner, LeavesAloneWhatWasAskedFor) {
  EngineOptions options;
  options.fusion_bytes = 12345;
  options.keep_cycle_time = true;
  Loop loop(options);
  EXPECT_TRUE(loop.is_frozen());
  options.keep_cycle_time = false;
  Loop other(options);
  const auto best = other.train([](const Tuning& setting) { return setting.cycle_ms; });
  EXPECT_EQ(best.fusion_bytes, 12345);
  EXPECT_EQ(best.cycle_ms, 0.1);
}

TEST(Tuner, EndsWhateverTheNoise) {
  Loop loop{EngineOptions()};
  double faster = 1;
  loop.train([&](const Tuning&) { return faster *= 0.999; });  // everything new is better
  EXPECT_TRUE(loop.is_frozen());
  EXPECT_LE(loop.switches(), 41);
}

TEST(Tuner, WritesARowForEachSetting) {
  const TemporaryDirectory directory;
  const std::string log = directory.path() + "/tune.csv";
  {
    Loop loop(EngineOptions(), log);
    loop.train([](const Tuning& setting) { return setting.cycle_ms / 100; });
  }
  std::ifstream file(log);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  ASSERT_GT(lines.size(), 4U);
  EXPECT_EQ(lines[0], "windows,fusion_bytes,cycle_ms,bytes_per_second,state");
  EXPECT_EQ(lines[1], "3,67108864,1,300000,better");
  for (std::size_t i = 1; i + 1 < lines.size(); ++i)
    EXPECT_THAT(lines[i], MatchesRegex("[0-9]+,[0-9]+,[0-9.]+,[0-9]+,(better|worse)"));
  EXPECT_THAT(lines.back(), MatchesRegex("[0-9]+,67108864,0.1,[0-9]+,frozen"));
}

}  // namespace
}  // namespace kolo::detail
