// Values that must be equal bit by bit: of two ways to compute the same.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include <kolo/core/runtime/session.h>

namespace kolo {

inline void expect_same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].shape(), b[i].shape()) << i;
    EXPECT_EQ(std::memcmp(a[i].raw(), b[i].raw(), a[i].bytes()), 0)
        << i << ": " << a[i].to_string() << " instead of " << b[i].to_string();
  }
}

/// What a session of each gives in its second run, whose memory the first one has used.
inline void expect_same_bits(Graph& graph, const std::vector<Fetch>& fetches, const Feeds& feeds,
                             const SessionConfig& config, GraphOptions others) {
  const auto run = [&](const SessionConfig& of) {
    Session session(graph, of);
    session.run(fetches, feeds);
    return session.run(fetches, feeds);
  };
  SessionConfig other = config;
  other.graph_options = std::move(others);
  expect_same_bits(run(config), run(other));
}

}  // namespace kolo
