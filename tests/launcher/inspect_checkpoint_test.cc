#include <gmock/gmock.h>

#include <string>

#include <kolo/core/training/checkpoint_files.h>

#include "tests/launcher/inspect_fixture.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class InspectCheckpoint : public InspectFixture {
 protected:
  InspectCheckpoint() {
    write(10);
    write(20);
  }

  void write(int step) {
    write_checkpoint(folder_ / fmt::format("model.ckpt-{}", step),
                     {{"w", Tensor::of<std::uint8_t>({3, 3}, {'1', '2', '3', '4', '5', '6', '7', '8', '9'})}},
                     {.global_step = step, .state = {{"samples", "{\"batch\":2,\"epoch\":1}"}}});
  }
};

TEST_F(InspectCheckpoint, PrintsTheNewestOfAFolderAsJson) {
  EXPECT_EQ(inspect("checkpoint --json " + folder_.path()), 0);
  const auto index = CheckpointReader(folder_ / "model.ckpt-20").index();
  EXPECT_EQ(out_,
            fmt::format(R"({{"file_bytes":{},"global_step":20,"header_crc32c":"{}","random_positions":{{}},)"
                        R"("state":{{"samples":{{"batch":2,"epoch":1}}}},)"
                        R"("tensors":{{"w":{{"crc32c":"e3069283","dtype":"u8","shape":[3,3]}}}}}})"
                        "\n",
                        index.file_bytes, crc32c_text(index.header_crc32c)));
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(InspectCheckpoint, PrintsATableWithoutJson) {
  EXPECT_EQ(inspect("checkpoint " + folder_.path()), 0);
  EXPECT_EQ(out_, "global_step 20\nw  u8    [3,3]  e3069283\n");
}

TEST_F(InspectCheckpoint, TakesAPrefixOrAFileOfACheckpoint) {
  for (const char* ending : {"", ".safetensors", ".index.json"}) {
    EXPECT_EQ(inspect("checkpoint --json " + (folder_ / "model.ckpt-10") + ending), 0) << err_;
    EXPECT_THAT(out_, HasSubstr("\"global_step\":10,"));
  }
}

TEST_F(InspectCheckpoint, ListsASafetensorsFileThatIsNoCheckpoint) {
  const std::string path = folder_ / "weights.safetensors";
  std::filesystem::copy_file(folder_ / "model.ckpt-10.safetensors", path);
  EXPECT_EQ(inspect("checkpoint " + path), 0) << err_;
  EXPECT_EQ(out_, "w  u8  [3,3]  e3069283\nno index beside it: sums not verified\n");
  EXPECT_EQ(inspect("checkpoint --json " + path), 0);
  EXPECT_EQ(out_, "{\"tensors\":{\"w\":{\"dtype\":\"u8\",\"shape\":[3,3],\"crc32c\":\"e3069283\"}}}\n");
}

TEST_F(InspectCheckpoint, DependsOnTheSavedStateAlone) {
  inspect("checkpoint --json " + (folder_ / "model.ckpt-20"));
  const std::string first = out_;
  write(20);
  inspect("checkpoint --json " + folder_.path());
  EXPECT_EQ(out_, first);
}

TEST_F(InspectCheckpoint, EndsWithOneLineWhereAByteHasChanged) {
  std::string bytes = bytes_of_file(folder_ / "model.ckpt-20.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_bytes(folder_ / "model.ckpt-20.safetensors", bytes);
  EXPECT_EQ(inspect("checkpoint --json " + folder_.path()), 1);
  EXPECT_THAT(out_, IsEmpty());
  EXPECT_THAT(err_,
              AllOf(HasSubstr("model.ckpt-20.safetensors: the sum of tensor \"w\""), HasSubstr("e3069283")));
  EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1);
}

TEST_F(InspectCheckpoint, SaysWhereThereIsNoCheckpoint) {
  EXPECT_EQ(inspect("checkpoint " + (folder_ / "none")), 1);
  EXPECT_THAT(err_, HasSubstr("there is no checkpoint " + (folder_ / "none")));
  TemporaryDirectory empty;
  EXPECT_EQ(inspect("checkpoint " + empty.path()), 1);
  EXPECT_THAT(err_, HasSubstr("there is no checkpoint in " + empty.path()));
}

TEST_F(InspectCheckpoint, RefusesABadCommandLineWithCodeTwo) {
  EXPECT_EQ(inspect(""), 2);
  EXPECT_EQ(inspect("chekpoint x"), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean \"checkpoint\"?"));
  EXPECT_EQ(inspect("checkpoint"), 2);
  EXPECT_EQ(inspect("checkpoint a b"), 2);
  EXPECT_EQ(inspect("checkpoint --jsn a"), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean \"--json\"?"));
}

TEST_F(InspectCheckpoint, TellsItsVersionAndItsCommands) {
  EXPECT_EQ(inspect("--version"), 0);
  EXPECT_THAT(out_, testing::StartsWith("kolo-inspect "));
  EXPECT_EQ(inspect("--help"), 0);
  EXPECT_THAT(out_, HasSubstr("kolo-inspect checkpoint PATH [--json]"));
  EXPECT_EQ(inspect("checkpoint --help"), 0);
  EXPECT_THAT(out_, HasSubstr("PATH"));
}

}  // namespace
}  // namespace kolo
