// Strangers of all kinds beside trainings, for as long as KOLO_SOAK_SECONDS says: 60 of them, an hour's for a
// release. The server's memory stays flat, and no bit of a training changes.
#include <gmock/gmock.h>

#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include <kolo/core/base/env.h>
#include <kolo/core/cluster/task_address.h>

#include "tests/core/cluster/garbage.h"
#include "tests/core/cluster/server_process.h"
#include "tests/core/cluster/servers_in_process.h"
#include "tests/core/cluster/strangers.h"
#include "tests/core/cluster/sync_worker.h"

namespace kolo {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::int64_t kSteps = 50;
constexpr double kMoreMiB = 16, kFloodMiB = 160;

// In the environment before the first server reads it.
class WithToken {
 protected:
  WithToken() : folder_(std::filesystem::temp_directory_path() / ("soak_test." + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    const std::string file = folder_ / "token";
    std::ofstream(file) << "correct horse battery";
    chmod(file.c_str(), 0600);
    setenv("KOLO_CLUSTER_TOKEN_FILE", file.c_str(), 1);
  }
  ~WithToken() {
    unsetenv("KOLO_CLUSTER_TOKEN_FILE");
    std::filesystem::remove_all(folder_);
  }

 private:
  std::filesystem::path folder_;
};

class Soak : private WithToken, public ServersTest {
 protected:
  std::vector<float> train() {
    Session::reset(target("worker0"), {}, patient());
    SyncTraining chief{
        .cluster = cluster_, .target = target("worker0"), .steps = kSteps, .elements = 100'000};
    SyncTraining second = chief;
    second.target = target("worker1"), second.worker = 1;
    auto other = std::async(std::launch::async, [&] { return train_in_step(second); });
    std::vector<float> w = train_in_step(chief);
    EXPECT_EQ(other.get(), w);
    return w;
  }
};

void pause(const std::stop_token& stop, std::chrono::milliseconds time) {
  for (const auto end = Clock::now() + time; !stop.stop_requested() && Clock::now() < end;)
    std::this_thread::sleep_for(10ms);
}

// Each does one thing again and again, at a rate that leaves a machine of two cores to the training.
void hold_connections(const std::stop_token& stop, int port) {
  while (!stop.stop_requested()) {
    RawConnections idle;
    for (int i = 0; i < 300; ++i) idle.add(port);
    pause(stop, 1s);
  }
}
void reset_streams(const std::stop_token& stop, int port) {
  while (!stop.stop_requested()) {
    flood_with_resets(port, 5000);
    pause(stop, 200ms);
  }
}
void send_garbage(const std::stop_token& stop, const std::string& address) {
  std::mt19937 random(47);
  std::string noise(64 << 10, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  const std::string preface = http2_preface();
  while (!stop.stop_requested()) {
    for (const std::string& bytes : {noise, std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), preface + noise,
                                     preface.substr(0, 10), std::string("\x16\x03\x01\x02\x00\x01", 6)})
      detail::send_raw(address, bytes);  // or not, while the server takes nobody
    pause(stop, 200ms);
  }
}
// Asks, never reads the answer, and sends the next request a byte at a time.
void read_slowly(const std::stop_token& stop, int port) {
  while (!stop.stop_requested()) {
    RawConnections connections;
    std::vector<int> descriptors;
    for (int i = 0; i < 20; ++i) descriptors.push_back(connections.add(port));
    const std::string asked = http2_preface() + reset_calls(1, 3);
    for (std::size_t byte = 0; byte < asked.size() && !stop.stop_requested(); byte += 8) {
      for (const int descriptor : descriptors)
        ::send(descriptor, asked.data() + byte, std::min<std::size_t>(8, asked.size() - byte), MSG_NOSIGNAL);
      pause(stop, 50ms);
    }
  }
}

TEST_F(Soak, StrangersCostNeitherMemoryNorABitOfATraining) {
#if defined(__SANITIZE_ADDRESS__) || defined(KOLO_THREAD_SANITIZER)
  GTEST_SKIP() << "memory means nothing under a sanitizer, which also lets the strangers outrun the server";
#endif
  const std::chrono::seconds time(env_int64("KOLO_SOAK_SECONDS", 60, 1, 86400));
  kill("ps0");
  // malloc keeps up to 16 MiB of free memory in each arena, which fill in the course of minutes: that is no
  // leak, and would hide one.
  setenv("MALLOC_ARENA_MAX", "2", 1);
  setenv("MALLOC_TRIM_THRESHOLD_", "131072", 1);
  const ServerProcess ps(cluster_);
  unsetenv("MALLOC_ARENA_MAX"), unsetenv("MALLOC_TRIM_THRESHOLD_");
  const std::vector<float> alone = train();
  const std::string address = cluster_.task_address("ps", 0);
  const int port = detail::task_address_of(address).port;

  std::vector<std::jthread> strangers;
  strangers.emplace_back([&](const std::stop_token& stop) { hold_connections(stop, port); });
  strangers.emplace_back([&](const std::stop_token& stop) { reset_streams(stop, port); });
  strangers.emplace_back([&](const std::stop_token& stop) { send_garbage(stop, address); });
  strangers.emplace_back([&](const std::stop_token& stop) { read_slowly(stop, port); });
  const auto begin = Clock::now();
  double second_quarter = 1e9, last_quarter = 1e9, most = 0;  // least and most, MiB
  int trainings = 0;
  while (Clock::now() < begin + time) {
    const std::vector<float> beside = train();
    ASSERT_EQ(std::memcmp(alone.data(), beside.data(), alone.size() * sizeof(float)), 0) << trainings;
    ++trainings;
    // The first quarter is for what is taken once: threads, their arenas, gRPC's own. Of what a flood takes
    // for a moment, up to 40 MiB, the least of a quarter knows nothing.
    const double now = ps.memory("VmRSS");
    const auto age = Clock::now() - begin;
    if (age > time / 4 && age < time / 2) second_quarter = std::min(second_quarter, now);
    if (age > time * 3 / 4) last_quarter = std::min(last_quarter, now);
    most = std::max(most, now);
  }
  strangers.clear();
  EXPECT_TRUE(ps.lives());
  EXPECT_GT(trainings, 2);
  EXPECT_LT(last_quarter, second_quarter + kMoreMiB);
  EXPECT_LT(most, second_quarter + kFloodMiB);
  RecordProperty("trainings", std::to_string(trainings));
  RecordProperty("MiB_in_the_second_quarter", std::to_string(second_quarter));
  RecordProperty("MiB_in_the_last_quarter", std::to_string(last_quarter));
  RecordProperty("MiB_at_most", std::to_string(most));
}

}  // namespace
}  // namespace kolo
