// Who is let in while the transport has calls that nobody has looked at. With a real server:
// strangers_test.cc.
#include <kolo/core/cluster/rpc/connections.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "strangers.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using detail::Connections;
using detail::Listening;

class Newcomers : public ::testing::Test {
 protected:
  Newcomers() {
    Listening listening = detail::listen_at("127.0.0.1:0", "");
    port_ = listening.port;
    connections_.emplace(
        std::move(listening), detail::resolved({.connections = 1000, .connections_of_peer = 1000}),
        "/job:ps/task:0", [this](int, int connection) { ::close(connection), ++adopted_; },
        [this] {
          return detail::CallCounts{begun_.load(), unseen_.load()};
        });
    connections_->start();
  }
  // How long it takes until all of them are in; 60 s: they never are.
  std::chrono::duration<double> let_in(int count) {
    const int before = adopted_;
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) clients_.add(port_);
    while (adopted_ < before + count && Clock::now() < begin + 60s) std::this_thread::sleep_for(5ms);
    return Clock::now() - begin;
  }

  std::atomic<std::int64_t> begun_{0}, unseen_{0};
  std::atomic<int> adopted_{0};
  int port_ = 0;
  RawConnections clients_;
  std::optional<Connections> connections_;
};

TEST_F(Newcomers, WaitWhileCallsAreNotSeen) {
  unseen_ = 5000;
  std::jthread server([&](const std::stop_token& stop) {  // it sees 1,000 calls a second
    while (!stop.stop_requested() && unseen_ > 0) std::this_thread::sleep_for(20ms), unseen_ -= 20;
  });
  EXPECT_GE(let_in(1), 2.5s);
  EXPECT_LE(unseen_, 2000);
}

TEST_F(Newcomers, DoNotWaitForCallsWhoseEndTheTransportHasMissed) {
  unseen_ = 5000;
  EXPECT_LT(let_in(100), 10s) << "16 of them were let in every 10 s";
  EXPECT_LT(let_in(100), 1.5s) << "once it is known they cost nothing";
  unseen_ = 6900;
  EXPECT_LT(let_in(50), 1.5s) << "1,900 more are allowed";
  unseen_ = 100;
  let_in(1);
  unseen_ = 5000;
  EXPECT_GE(let_in(1), 1.5s) << "what has been missed is forgotten when the count falls below it";
}

// The server sees as many as strangers send. That their number stays says nothing then.
TEST_F(Newcomers, WaitWhileStrangersSendCalls) {
  unseen_ = 5000;
  std::jthread strangers([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::sleep_for(20ms), begun_ += 10;
  });
  EXPECT_GE(let_in(1), 9s);
}

// What came before is still there when strangers send no more, and less by the second.
TEST_F(Newcomers, WaitUntilAFloodThatCameMeanwhileIsSeen) {
  unseen_ = 5000;
  std::jthread server([&](const std::stop_token& stop) {
    for (int i = 0; i < 25; ++i) std::this_thread::sleep_for(20ms), begun_ += 400, unseen_ += 400;
    while (!stop.stop_requested() && unseen_ > 0) std::this_thread::sleep_for(20ms), unseen_ -= 60;
  });
  EXPECT_GE(let_in(1), 4s);
  EXPECT_LE(unseen_, 2000);
}

// The transport would read all of it before anybody could look.
TEST_F(Newcomers, WhoHaveSentMuchMeanwhileAreClosed) {
  unseen_ = 5000;
  const int noisy = clients_.add(port_);
  const std::string much(20 << 10, 'x');
  ASSERT_EQ(::send(noisy, much.data(), much.size(), MSG_NOSIGNAL), static_cast<ssize_t>(much.size()));
  clients_.add(port_);
  unseen_ = 0;
  for (const auto end = Clock::now() + 60s; adopted_ < 1 && Clock::now() < end;)
    std::this_thread::sleep_for(5ms);
  char byte = 0;
  EXPECT_LE(::recv(noisy, &byte, 1, 0), 0);
  EXPECT_EQ(adopted_, 1);
}

}  // namespace
}  // namespace kolo
