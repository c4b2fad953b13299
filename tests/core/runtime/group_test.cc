#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/runtime/group.h>

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

// One rank of a group whose other ranks report what the test says.
class ScriptedGroup final : public Group {
 public:
  ScriptedGroup(int rank, std::vector<std::string> reports) : rank_(rank), reports_(std::move(reports)) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(reports_.size()); }
  void broadcast(std::span<const Tensor>, int) override {}
  std::string broadcast(const std::string& text, int) override { return text; }
  std::vector<std::string> allgather(const std::string& text) override {
    reports_[rank_] = text;
    return reports_;
  }

 private:
  int rank_;
  std::vector<std::string> reports_;
};

// What a rank that fails so sends to the others.
std::string report_of(Code code, const std::string& error) {
  std::string sent;
  class Recorder final : public Group {
   public:
    explicit Recorder(std::string& sent) : sent_(sent) {}
    int rank() const override { return 0; }
    int size() const override { return 1; }
    void broadcast(std::span<const Tensor>, int) override {}
    std::string broadcast(const std::string& text, int) override { return text; }
    std::vector<std::string> allgather(const std::string& text) override {
      sent_ = text;
      return {""};
    }

   private:
    std::string& sent_;
  } recorder(sent);
  throw_if_any_failed(recorder, code, error);
  return sent;
}

TEST(WorldGroup, IsAGroupOfOneUntilInit) {
  Group& group = world_group();
  EXPECT_EQ(group.rank(), 0);
  EXPECT_EQ(group.size(), 1);
  EXPECT_EQ(group.broadcast("text", 0), "text");
  EXPECT_THAT(group.allgather("text"), ElementsAre("text"));
}

TEST(WorldGroup, OfOneLeavesTensorsAsTheyAre) {
  const Tensor tensor = Tensor::of<float>({2}, {1, 2});
  world_group().broadcast(std::vector<Tensor>{tensor}, 0);
  EXPECT_EQ(tensor.data<float>()[1], 2);
}

TEST(WorldGroup, OfOneGathersFromItselfAndScattersToItself) {
  const Tensor own = Tensor::of<float>({2}, {1, 2}), part = Tensor::zeros(DType::f32, {2});
  world_group().gather(own, std::vector<Tensor>{part}, 0);
  EXPECT_EQ(part.data<float>()[1], 2);
  own.data<float>()[1] = 7;
  world_group().scatter(std::vector<Tensor>{part}, own, 0);
  EXPECT_EQ(own.data<float>()[1], 2);
}

TEST(WorldGroup, IsWhatInitMadeUntilShutdown) {
  set_world_group(std::make_unique<ScriptedGroup>(2, std::vector<std::string>(4)));
  EXPECT_EQ(world_group().rank(), 2);
  EXPECT_EQ(world_group().size(), 4);
  set_world_group(nullptr);
  EXPECT_EQ(world_group().size(), 1);
}

TEST(ThrowIfAnyFailed, DoesNothingWhereAllSucceeded) {
  ScriptedGroup group(1, {"", "", ""});
  EXPECT_NO_THROW(throw_if_any_failed(group, Code::internal, ""));
}

TEST(ThrowIfAnyFailed, ThrowsThisRanksOwnErrorUnchanged) {
  ScriptedGroup group(1, {"", "", ""});
  EXPECT_THAT([&] { throw_if_any_failed(group, Code::data_loss, "a.safetensors: {} is cut"); },
              ThrowsMessage<DataLossError>(StrEq("a.safetensors: {} is cut")));
}

TEST(ThrowIfAnyFailed, ThrowsAnotherRanksErrorWithItsRank) {
  ScriptedGroup group(0, {"", "", report_of(Code::not_found, "no such file")});
  EXPECT_THAT([&] { throw_if_any_failed(group, Code::unknown, ""); },
              ThrowsMessage<NotFoundError>(StrEq("rank 2: no such file")));
}

TEST(ThrowIfAnyFailed, ThrowsTheLowestFailingRanksErrorOnEveryRank) {
  ScriptedGroup group(2, {"", report_of(Code::unavailable, "disk is gone"), ""});
  EXPECT_THAT([&] { throw_if_any_failed(group, Code::data_loss, "my own"); },
              ThrowsMessage<UnavailableError>(StrEq("rank 1: disk is gone")));
}

}  // namespace
}  // namespace kolo
