// Values that are not tensors: bytes, JSON and protobuf messages.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <gtest/gtest.h>

#include <string>

#include <nlohmann/json.hpp>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/engine/process_set.h>
#include <kolo/collectives/job/init.h>

namespace kolo {
namespace {

using google::protobuf::Struct;
using nlohmann::json;
using testing::Each;
using testing::IsEmpty;

json settings_of(int rank) {
  return {{"rank", rank},
          {"rate", 0.1 * rank},
          {"layers", {{{"name", "fc1"}, {"units", 128}}, {{"name", "fc2"}, {"units", rank}}}},
          {"nothing", nullptr},
          {"text", fmt::format("{:x>{}}\"\\ü", "", 1000 * rank)}};
}

Struct message_of(int rank) {
  Struct message;
  (*message.mutable_fields())["rank"].set_number_value(rank);
  for (int i = 0; i < rank; ++i)
    (*message.mutable_fields())["list"].mutable_list_value()->add_values()->set_string_value("item");
  return message;
}

TEST(BroadcastObject, GivesAllRanksTheRootsJson) {
  for (const int root : {0, size() - 1})
    EXPECT_EQ(broadcast_object(settings_of(rank()), root), settings_of(root));
}

TEST(BroadcastObject, GivesAllRanksTheRootsMessage) {
  for (const int root : {0, size() - 1})
    EXPECT_EQ(broadcast_object(message_of(rank()), root).DebugString(), message_of(root).DebugString());
}

TEST(BroadcastObject, KeepsZeroBytesAndMegabytes) {
  std::string bytes(3000000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  EXPECT_TRUE(broadcast_object(rank() == 0 ? std::string_view(bytes) : "", 0) == bytes);
}

TEST(AllgatherObject, GivesAllRanksAllJsonInRankOrder) {
  const auto all = allgather_object(settings_of(rank()));
  ASSERT_EQ(all.size(), static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) EXPECT_EQ(all[r], settings_of(r));
}

// Rank 0's has a field alone, so that its bytes are fewer.
TEST(AllgatherObject, GivesAllRanksAllMessagesInRankOrder) {
  const auto all = allgather_object(message_of(rank()));
  ASSERT_EQ(all.size(), static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) EXPECT_EQ(all[r].DebugString(), message_of(r).DebugString());
}

TEST(AllgatherObject, OfNothingIsNothingFromEachRank) {
  EXPECT_THAT(allgather_object(std::string_view()), Each(IsEmpty()));
  for (const Struct& message : allgather_object(Struct())) EXPECT_EQ(message.fields_size(), 0);
  EXPECT_THAT(allgather_object(json()), Each(json()));
}

TEST(Objects, StayWithinTheProcessSet) {
  const ProcessSet half = ProcessSet::split(rank() % 2, -rank());  // backwards
  const auto ranks = half.ranks();
  const auto all = allgather_object(json{{"rank", rank()}}, {.process_set = half});
  ASSERT_EQ(all.size(), ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) EXPECT_EQ(all[i].at("rank"), ranks[i]);
  EXPECT_EQ(broadcast_object(json{{"rank", rank()}}, ranks.back(), {.process_set = half}).at("rank"),
            ranks.back());
}

}  // namespace
}  // namespace kolo
