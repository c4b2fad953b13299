#include <kolo/core/training/checkpoint_files.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include <kolo/core/base/error.h>

#include "tests/core/training/temporary_directory.h"
#include "tests/recorded_calls.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::ThrowsMessage;

const char* const kFiles[] = {"model.ckpt-20.safetensors", "model.ckpt-20.index.json"};

// Checkpoints of step 10 and 20, the elements of "w" telling them apart.
class Checkpoints : public testing::Test {
 protected:
  Checkpoints() {
    for (const int step : {10, 20}) write(step);
    write_checkpoint_state({"model.ckpt-20", {"model.ckpt-10", "model.ckpt-20"}}, folder_.path());
  }

  void write(int step) {
    const auto value = static_cast<float>(step);
    write_checkpoint(
        folder_ / ("model.ckpt-" + std::to_string(step)),
        {{"w", Tensor::of<float>({2}, {value, -value})}, {"global_step", Tensor::scalar<std::int64_t>(step)}},
        {.global_step = step, .random_positions = {{"noise", 7}}, .state = {{"samples", "[1,2]"}}});
  }

  // What newest_intact_checkpoint finds, without its folder, and what it logs.
  std::string newest() {
    testing::internal::CaptureStderr();
    const auto prefix = newest_intact_checkpoint(folder_.path());
    log_ = testing::internal::GetCapturedStderr();
    return prefix ? std::filesystem::path(*prefix).filename().string() : "";
  }

  TemporaryDirectory folder_;
  std::string log_;
};

TEST_F(Checkpoints, AreTwoFilesEachAndTheStateFile) {
  EXPECT_THAT(folder_.names(),
              ElementsAre("checkpoint", "model.ckpt-10.index.json", "model.ckpt-10.safetensors",
                          "model.ckpt-20.index.json", "model.ckpt-20.safetensors"));
}

TEST_F(Checkpoints, HaveEqualBytesForEqualState) {
  const std::string tensors = bytes_of_file(folder_ / kFiles[0]), index = bytes_of_file(folder_ / kFiles[1]);
  write(20);
  EXPECT_EQ(bytes_of_file(folder_ / kFiles[0]), tensors);
  EXPECT_EQ(bytes_of_file(folder_ / kFiles[1]), index);
}

TEST_F(Checkpoints, GiveBackTensorsAndState) {
  CheckpointReader reader(folder_ / "model.ckpt-20");
  reader.verify();
  const Tensor w(DType::f32, {2});
  reader.read("w", w);
  EXPECT_THAT(w.span<float>(), ElementsAre(20, -20));
  EXPECT_EQ(reader.index().global_step, 20);
  EXPECT_EQ(reader.index().random_positions.at("noise"), 7u);
  EXPECT_EQ(reader.index().state.at("samples"), "[1,2]");
}

TEST_F(Checkpoints, NewestIsThatOfTheHighestStep) {
  EXPECT_EQ(newest(), "model.ckpt-20");
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(Checkpoints, AreComparedByStepAndNotByText) {
  write(9);
  EXPECT_THAT(list_checkpoints(folder_.path()),
              ElementsAre("model.ckpt-20", "model.ckpt-10", "model.ckpt-9"));
}

TEST_F(Checkpoints, AreNoneInAnEmptyOrMissingFolder) {
  TemporaryDirectory empty;
  EXPECT_FALSE(newest_intact_checkpoint(empty.path()));
  EXPECT_FALSE(newest_intact_checkpoint(empty / "none"));
}

TEST_F(Checkpoints, AreFoundWithoutTheStateFile) {
  std::filesystem::remove(folder_ / "checkpoint");
  EXPECT_EQ(newest(), "model.ckpt-20");
}

TEST_F(Checkpoints, AreFoundDespiteADamagedStateFile) {
  write_bytes(folder_ / "checkpoint", "model_checkpoint_path: \"model.ck");
  EXPECT_EQ(newest(), "model.ckpt-20");
  EXPECT_THAT(log_, HasSubstr("Checkpoint ignored"));
}

TEST_F(Checkpoints, FallBackToThePreviousOneWithOneWarningWhenAFileIsMissing) {
  for (const char* file : kFiles) {
    const std::string bytes = bytes_of_file(folder_ / file);
    std::filesystem::remove(folder_ / file);
    EXPECT_EQ(newest(), "model.ckpt-10");
    EXPECT_THAT(log_, HasSubstr(fmt::format("ignoring model.ckpt-20: {}: missing\n", file)));
    EXPECT_EQ(log_.find("ignoring"), log_.rfind("ignoring"));
    write_bytes(folder_ / file, bytes);
  }
}

TEST_F(Checkpoints, FallBackWhenBothFilesOfAListedOneAreMissing) {
  remove_checkpoint(folder_ / "model.ckpt-20");
  EXPECT_EQ(newest(), "model.ckpt-10");
  EXPECT_THAT(log_, HasSubstr("ignoring model.ckpt-20: model.ckpt-20.index.json: missing"));
}

TEST_F(Checkpoints, FindEveryCut) {
  for (const char* file : kFiles) {
    const std::string bytes = bytes_of_file(folder_ / file);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      write_bytes(folder_ / file, bytes.substr(0, length));
      EXPECT_THAT([&] { CheckpointReader(folder_ / "model.ckpt-20").verify(); },
                  ThrowsMessage<DataLossError>(HasSubstr(file)))
          << length;
    }
    write_bytes(folder_ / file, bytes + '\0');
    EXPECT_THROW(CheckpointReader(folder_ / "model.ckpt-20").verify(), DataLossError);
    write_bytes(folder_ / file, bytes);
  }
}

// Every bit of the tensors' file; in the index, all of whose bits checkpoint_index_test flips, one in each
// byte.
TEST_F(Checkpoints, FindEveryFlippedBit) {
  for (const char* file : kFiles) {
    const std::string bytes = bytes_of_file(folder_ / file);
    const std::size_t stride = file == kFiles[0] ? 1 : 9;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += stride) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      write_bytes(folder_ / file, flipped);
      EXPECT_THROW(CheckpointReader(folder_ / "model.ckpt-20").verify(), DataLossError)
          << file << " bit " << bit;
    }
    write_bytes(folder_ / file, bytes);
  }
  EXPECT_NO_THROW(CheckpointReader(folder_ / "model.ckpt-20").verify());
}

TEST_F(Checkpoints, NameTheTensorWhoseElementsChanged) {
  std::string bytes = bytes_of_file(folder_ / kFiles[0]);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_bytes(folder_ / kFiles[0], bytes);
  EXPECT_EQ(newest(), "model.ckpt-10");
  EXPECT_THAT(log_,
              HasSubstr("ignoring model.ckpt-20: model.ckpt-20.safetensors: the sum of tensor \"w\" is "));
}

TEST_F(Checkpoints, DoNotFitFilesOfAnotherOne) {
  std::filesystem::copy_file(folder_ / "model.ckpt-10.index.json", folder_ / kFiles[1],
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THROW(CheckpointReader(folder_ / "model.ckpt-20").verify(), DataLossError);
}

TEST_F(Checkpoints, AreAnErrorWhenNoneIsIntact) {
  for (const int step : {10, 20})
    std::filesystem::resize_file(folder_ / fmt::format("model.ckpt-{}.safetensors", step), 40);
  testing::internal::CaptureStderr();
  EXPECT_THAT(
      [&] { newest_intact_checkpoint(folder_.path()); },
      ThrowsMessage<DataLossError>(AllOf(HasSubstr("none of the 2 checkpoints"), HasSubstr(folder_.path()))));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("ignoring model.ckpt-20: "), HasSubstr("ignoring model.ckpt-10: ")));
}

TEST_F(Checkpoints, WarnsWithBothStepsWhereAnOlderOneIsUsed) {
  std::filesystem::resize_file(folder_ / "model.ckpt-20.safetensors", 40);
  testing::internal::CaptureStderr();
  EXPECT_EQ(newest_trained_checkpoint(folder_.path()), folder_ / "model.ckpt-10");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("ignoring model.ckpt-20: model.ckpt-20.safetensors: "),
                         HasSubstr("; step 10 is taken in place of step 20\n")));
}

TEST_F(Checkpoints, AreNotUsedUntrainedInPlaceOfADamagedOne) {
  for (const char* const ending : {".safetensors", ".index.json"})
    std::filesystem::rename(folder_ / fmt::format("model.ckpt-10{}", ending),
                            folder_ / fmt::format("model.ckpt-0{}", ending));
  EXPECT_EQ(newest_trained_checkpoint(folder_.path()), folder_ / "model.ckpt-20");
  std::filesystem::resize_file(folder_ / "model.ckpt-20.safetensors", 40);
  EXPECT_THAT([&] { newest_trained_checkpoint(folder_.path()); },
              ThrowsMessage<DataLossError>(AllOf(HasSubstr("model.ckpt-20.safetensors: "),
                                                 HasSubstr("step 0, the untrained network"),
                                                 HasSubstr("put back a copy of the file, or train again"))));
}

TEST_F(Checkpoints, OtherFilesOfTheFolderAreLeftAlone) {
  for (const char* name : {"model.ckpt-x.index.json", "notes.txt", "my.tmp", "model.ckpt-.safetensors"})
    write_bytes(folder_ / name, "mine");
  finish_cut_saves(folder_.path());
  EXPECT_EQ(newest(), "model.ckpt-20");
  EXPECT_THAT(log_, IsEmpty());
  EXPECT_EQ(bytes_of_file(folder_ / "my.tmp"), "mine");
}

TEST_F(Checkpoints, TemporariesOfAKilledRunAreIgnoredAndRemoved) {
  for (const char* name : {"model.ckpt-30.index.json.01234567.tmp", "model.ckpt-30.safetensors.89abcdef.tmp",
                           "checkpoint.00000000.tmp", "model.ckpt-30.index.json.tmp"})
    write_bytes(folder_ / name, "half");
  EXPECT_EQ(newest(), "model.ckpt-20");
  EXPECT_THAT(log_, IsEmpty());
  finish_cut_saves(folder_.path());
  EXPECT_THAT(folder_.names(), Not(testing::Contains(testing::EndsWith(".tmp"))));
}

TEST_F(Checkpoints, ASaveThatWasCutBetweenItsTwoNamesIsFinished) {
  write(30);
  std::filesystem::rename(folder_ / "model.ckpt-30.index.json",
                          folder_ / "model.ckpt-30.index.json.01234567.tmp");
  EXPECT_EQ(newest(), "model.ckpt-20");
  finish_cut_saves(folder_.path());
  EXPECT_EQ(newest(), "model.ckpt-30");
}

TEST_F(Checkpoints, AnIndexThatIsHalfIsNoSaveToFinish) {
  write(30);
  std::filesystem::rename(folder_ / "model.ckpt-30.index.json",
                          folder_ / "model.ckpt-30.index.json.01234567.tmp");
  std::filesystem::resize_file(folder_ / "model.ckpt-30.index.json.01234567.tmp", 40);
  finish_cut_saves(folder_.path());
  EXPECT_EQ(newest(), "model.ckpt-20");
  EXPECT_THAT(folder_.names(), Not(testing::Contains(testing::EndsWith(".tmp"))));
}

TEST_F(Checkpoints, AFailedWriteLeavesTheOldOneIntactAndNoTemporary) {
  {
    RecordedCalls calls(folder_.path());
    calls.fail("write model.ckpt-20.safetensors.tmp", ENOSPC);
    EXPECT_THROW(write(20), ResourceExhaustedError);
  }
  EXPECT_EQ(newest(), "model.ckpt-20");
  EXPECT_THAT(folder_.names(), Not(testing::Contains(testing::EndsWith(".tmp"))));
}

}  // namespace
}  // namespace kolo
