// Row 48 of the collectives' worked examples: eager operations of one thread beside another's training steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/job/init.h>
#include <kolo/collectives/schedule/schedule.h>

namespace kolo {
namespace {

TEST(EagerBesideSchedule, BothAreRight) {
  Schedule schedule({.name = "beside", .gradients = {{"g", Shape{1000}, DType::f32}}});
  std::atomic<int> wrong{0};
  std::jthread eager([&] {
    for (int step = 0; step < 50; ++step) {
      std::vector<float> values(300, static_cast<float>(rank() + step));
      allreduce(std::span(values), ReduceOp::sum, {.name = "eager"});
      const auto expected = static_cast<float>(size() * step + size() * (size() - 1) / 2);
      for (const float value : values) wrong += value != expected ? 1 : 0;
    }
  });
  schedule.compare();
  auto* const gradient = reinterpret_cast<float*>(schedule.buckets()[0].memory()->data());
  for (int step = 0; step < 50; ++step) {
    std::fill_n(gradient, 1000, static_cast<float>(rank() + 1));
    schedule.begin();
    std::promise<std::exception_ptr> over;
    schedule.buckets()[0].submit([&](std::exception_ptr error) { over.set_value(error); });
    ASSERT_EQ(over.get_future().get(), nullptr);
    EXPECT_EQ(gradient[999], static_cast<float>(size() + 1) / 2);
  }
  eager.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace kolo
