// A stranger's garbage beside a training changes no bit of it, and costs a server no memory. Row 47 of
// CLUSTER.md's worked examples.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <future>
#include <map>
#include <random>
#include <thread>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/cluster/rpc/channel.h>

#include "tests/core/cluster/garbage.h"
#include "tests/core/cluster/server_process.h"
#include "tests/core/cluster/servers_in_process.h"
#include "tests/core/cluster/sync_worker.h"

namespace kolo {
namespace {

using detail::call_raw;
using detail::payload;
using detail::send_raw;
using Header = kolo::cluster::PayloadHeader;

constexpr int kTimes = 100;
constexpr std::int64_t kSteps = 50;
constexpr std::uint64_t kTooManyNodes = 1'000'001;
#if defined(__SANITIZE_ADDRESS__) || defined(KOLO_THREAD_SANITIZER)
constexpr double kMoreMiB = 64;  // it notes where memory was taken, or who has touched it
#else
constexpr double kMoreMiB = 16;
#endif

/// Of so many nodes `n` that do nothing, whole and with its checksum.
std::string graph_of(std::uint64_t nodes) {
  const std::string node = std::string("\x0a\x01n\x12\x04NoOp", 9);
  std::string graph;
  graph.reserve(nodes * (node.size() + 2) + 5);
  for (std::uint64_t i = 0; i < nodes; ++i)
    graph += "\x0a" + std::string(1, static_cast<char>(node.size())) + node;
  const std::uint32_t sum = crc32c(graph.data(), graph.size());
  graph += '\x7d';
  graph.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  return graph;
}

/// Protobuf of a message in itself, again and again: for a parser that recurses.
std::string nested(int levels) {
  std::string bytes;
  for (int i = 0; i < levels; ++i) {
    std::string size;
    std::size_t left = bytes.size();
    for (; left >= 0x80; left >>= 7) size += static_cast<char>(left | 0x80);
    size += static_cast<char>(left);
    bytes.insert(0, "\x12" + size);
  }
  return bytes;
}

/// All kinds, one after the other, `times` times; counts what it has sent.
class Stranger {
 public:
  Stranger() {
    std::mt19937 random(47);
    noise_.resize(1 << 20);
    for (char& byte : noise_) byte = static_cast<char>(random());
    huge_.set_dtype(static_cast<std::uint32_t>(DType::f32));
    huge_.add_dims(std::int64_t{1} << 60);
    huge_.set_bytes(std::uint64_t{1} << 62);
    negative_.set_dtype(static_cast<std::uint32_t>(DType::f32));
    negative_.add_dims(-1);
    negative_.add_dims(4);
    negative_.set_bytes(16);
    graph_.set_kind(Header::GRAPH);
    graph_.set_bytes(nodes_.size());
    graph_.set_nodes(kTooManyNodes);
    lying_ = graph_;
    lying_.set_nodes(1);
    deep_ = nested(20'000);
  }

  void send_all(const std::string& address) {
    EXPECT_TRUE(send_raw(address, noise_));
    EXPECT_TRUE(send_raw(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_TRUE(send_raw(address, std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").substr(0, 10)));
    const std::string session = session_on(address);
    expect_refused(address, "RunStep", {feed_of(session), payload(huge_)},
                   grpc::StatusCode::RESOURCE_EXHAUSTED);
    expect_refused(address, "RunStep", {feed_of(session), payload(negative_, std::string(16, '\0'))},
                   grpc::StatusCode::INVALID_ARGUMENT);
    expect_refused(address, "RunStep", {feed_of(std::string(32, 'a')), payload(huge_)},
                   grpc::StatusCode::ABORTED);
    expect_refused(address, "CreateSession", {"", payload(graph_)}, grpc::StatusCode::RESOURCE_EXHAUSTED);
    expect_refused(address, "RunStep", {deep_}, grpc::StatusCode::INVALID_ARGUMENT);
  }
  /// Zeros that are a thousandth of their size on the wire.
  void send_bomb(const std::string& address) {
    const grpc::Status status =
        call_raw(address, "RunStep", {std::string(std::size_t{64} << 20, '\0')}, GRPC_COMPRESS_GZIP);
    EXPECT_FALSE(status.ok());
  }
  /// 11 MB that say that they are one node.
  void send_lie(const std::string& address) {
    std::vector<std::string> messages{"", payload(lying_)};
    for (std::size_t at = 0; at < nodes_.size(); at += 1 << 20)
      messages.push_back(nodes_.substr(at, 1 << 20));
    const grpc::Status status = call_raw(address, "CreateSession", messages);
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.error_details(), ::testing::HasSubstr("it has more than 1000000 nodes"));
  }

 private:
  /// One that it has made there.
  const std::string& session_on(const std::string& address) {
    std::string& handle = sessions_[address];
    if (handle.empty())
      handle = detail::RemoteMaster(detail::make_channel(address, {.name = "stranger"}))
                   .call<detail::CreateSession>({}, {},
                                                std::chrono::steady_clock::now() + std::chrono::seconds(30))
                   .handle();
    return handle;
  }
  static std::string feed_of(const std::string& session) {
    kolo::cluster::RunStepRequestDef step;
    step.set_session(session);
    step.set_feeds(1);
    return step.SerializeAsString();
  }
  static void expect_refused(const std::string& address, const std::string& method,
                             const std::vector<std::string>& messages, grpc::StatusCode code) {
    const grpc::Status status = call_raw(address, method, messages);
    EXPECT_EQ(status.error_code(), code) << method << ": " << status.error_message();
  }

  const std::string nodes_ = graph_of(kTooManyNodes);
  std::string noise_, deep_;
  Header huge_, negative_, graph_, lying_;
  std::map<std::string, std::string> sessions_;  // by address
};

class BesideGarbage : public ServersTest {
 protected:
  /// before_step: of the second worker.
  std::vector<float> train(const std::function<void(std::int64_t)>& before_step = {}) {
    Session::reset(target("worker0"), {}, patient());
    SyncTraining chief{
        .cluster = cluster_, .target = target("worker0"), .steps = kSteps, .elements = 100'000};
    SyncTraining second = chief;
    second.target = target("worker1"), second.worker = 1, second.before_step = before_step;
    auto other = std::async(std::launch::async, [&] { return train_in_step(second); });
    std::vector<float> w = train_in_step(chief);
    EXPECT_EQ(other.get(), w);
    return w;
  }
};

TEST_F(BesideGarbage, TrainingEndsWithTheSameBitsInTheSameMemory) {
  kill("ps0");
  const ServerProcess ps(cluster_);
  Stranger stranger;
  const std::vector<float> alone = train();
  const double rss = ps.memory("VmRSS"), most = ps.memory("VmHWM");

  std::atomic<int> sent = 0;
  std::jthread sender([&] {
    for (; sent < kTimes; ++sent)
      for (const char* const task : {"ps", "worker"}) stranger.send_all(cluster_.task_address(task, 0));
  });
  // The training takes as long as the garbage.
  const std::vector<float> beside = train([&](std::int64_t step) {
    while (sent < std::min<std::int64_t>(kTimes, step * kTimes / (kSteps - 1)))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  sender.join();
  EXPECT_EQ(std::memcmp(alone.data(), beside.data(), alone.size() * sizeof(float)), 0);
  EXPECT_NE(alone[0], 1.0f);
  EXPECT_TRUE(ps.lives());
  stranger.send_bomb(cluster_.task_address("ps", 0));
  EXPECT_LT(ps.memory("VmRSS"), rss + kMoreMiB);
  EXPECT_LT(ps.memory("VmHWM"), most + kMoreMiB);

  // These bytes have to be read before they are known to be garbage. What malloc keeps of them does not grow.
  for (int i = 0; i < 20; ++i) stranger.send_lie(cluster_.task_address("ps", 0));
  EXPECT_LT(ps.memory("VmRSS"), rss + 100);
  EXPECT_TRUE(ps.lives());
  RecordProperty("MiB_more_after_lies", std::to_string(ps.memory("VmRSS") - rss));
}

}  // namespace
}  // namespace kolo
