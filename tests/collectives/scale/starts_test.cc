// A thousand ranks start: they compare what they must have in common.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <kolo/collectives/algorithms/text_comparison.h>

#include "tests/collectives/algorithms/simulated_network.h"

namespace kolo {
namespace {

constexpr int kRanks = 1024, kRanksOfHost = 8;

Topology hosts_of(int ranks) {
  std::vector<int> leaders(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    leaders[static_cast<std::size_t>(rank)] = rank - rank % kRanksOfHost;
  return Topology(leaders);
}

struct Compared {
  std::vector<bool> same;  // by rank
  std::int64_t messages = 0;
  SimulatedNetwork::Sent most;  // of any rank
};
Compared compare(const std::vector<std::string>& texts) {
  const Topology topology = hosts_of(static_cast<int>(texts.size()));
  SimulatedNetwork network(topology, 7);
  std::vector<std::shared_ptr<TextComparison>> comparisons;
  for (int rank = 0; rank < network.size(); ++rank)
    comparisons.push_back(
        std::make_shared<TextComparison>(network.end(rank), topology, texts[static_cast<std::size_t>(rank)]));
  network.run({comparisons.begin(), comparisons.end()});
  Compared compared;
  for (const auto& comparison : comparisons) compared.same.push_back(comparison->is_same());
  compared.messages = network.messages();
  for (int rank = 0; rank < network.size(); ++rank) {
    const auto& sent = network.sent(rank);
    compared.most.messages = std::max(compared.most.messages, sent.messages);
    compared.most.bytes = std::max(compared.most.bytes, sent.bytes);
    if (sent.partners.size() > compared.most.partners.size()) compared.most.partners = sent.partners;
  }
  return compared;
}

TEST(Starts, CompareTextsByTwoShortMessagesARank) {
  const Compared compared = compare(std::vector<std::string>(kRanks, std::string(20000, 'x')));
  EXPECT_THAT(compared.same, testing::Each(true));
  EXPECT_EQ(compared.messages, 2 * (kRanks - 1));
  // A host's first rank has the other seven, and a parent and four children among the hosts.
  EXPECT_LE(compared.most.messages, kRanksOfHost - 1 + 5);
  EXPECT_LE(compared.most.bytes, 32 * (kRanksOfHost - 1 + 5));
  EXPECT_LE(compared.most.partners.size(), static_cast<std::size_t>(kRanksOfHost - 1 + 5));
}

TEST(Starts, FindOneTextThatDiffersOnAllRanks) {
  for (const int other : {0, 1, 700, 1023}) {
    std::vector<std::string> texts(kRanks, "KOLO_BUCKET_BYTES 1000");
    texts[static_cast<std::size_t>(other)] = "KOLO_BUCKET_BYTES 1001";
    EXPECT_THAT(compare(texts).same, testing::Each(false)) << "rank " << other;
  }
}

TEST(Starts, CompareTextsOfAnyNumberOfRanks) {
  for (const int ranks : {2, 3, 5, 6, 7, 11}) {
    std::vector<std::string> texts(static_cast<std::size_t>(ranks), "a");
    EXPECT_THAT(compare(texts).same, testing::Each(true)) << ranks;
    texts.back() = "";
    EXPECT_THAT(compare(texts).same, testing::Each(false)) << ranks;
  }
}

}  // namespace
}  // namespace kolo
