// kolo-inspect export: the network of a checkpoint folder, with the weights of its newest checkpoint, as a
// file for other programs.
#include <fmt/core.h>

#include <filesystem>
#include <string>
#include <vector>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/onnx/onnx_model.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/inference_graph.h>
#include <kolo/launcher/inspect_command.h>

namespace kolo::launcher {
namespace {

constexpr char kExportUsage[] = "export DIR FILE.onnx";

std::string graph_file(const std::string& directory) {
  std::string file = directory + "/" + kInferenceGraphFile;
  if (std::filesystem::exists(file)) return file;
  throw NotFoundError(
      "{} has no {}: kolo-train writes it beside its checkpoints, a program of your own by "
      "kolo::write_inference_graph",
      directory, kInferenceGraphFile);
}

void write_model(const std::string& directory, const std::string& file) {
  Graph graph;
  import_graph_def(Scope(graph), read_graph_def(graph_file(directory)));
  Outputs outputs;
  for (const Node* node : graph.collection(kInferenceOutputs)) outputs.push_back(node->output());
  const auto checkpoint = newest_trained_checkpoint(directory);
  if (!checkpoint) throw NotFoundError("there is no checkpoint in {}", directory);
  CheckpointReader reader(*checkpoint);
  int weights = 0;
  write_onnx(file, outputs, [&](const Node& storage) {
    Tensor value(storage.output_dtype(0), storage.output_shape(0));
    reader.read(storage.name(), value);
    ++weights;
    return value;
  });
  fmt::print("{} with the {} of {} ({} bytes)\n", file, count_of(weights, "weight"), *checkpoint,
             std::filesystem::file_size(file));
}

void export_model(const std::vector<std::string>& words) {
  std::vector<std::string> paths;
  for (const std::string& word : words) {
    if (asks_for_help(word))
      return fmt::print(
          "Usage: kolo-inspect {}\n\n"
          "Writes the network of a checkpoint folder for other programs, as ONNX (opset 17), with the "
          "weights "
          "of the\n"
          "newest checkpoint. DIR: a folder in which beside checkpoints lies {}, as kolo-train writes it.\n",
          kExportUsage, kInferenceGraphFile);
    if (word.starts_with("--"))
      throw CommandLineError(fmt::format("unknown option {}; usage: kolo-inspect {}", word, kExportUsage));
    paths.push_back(word);
  }
  if (paths.size() != 2)
    throw CommandLineError(fmt::format("{} paths given; usage: kolo-inspect {}", paths.size(), kExportUsage));
  if (!paths[1].ends_with(".onnx"))
    throw CommandLineError(
        fmt::format("\"{}\" does not end in .onnx, the only form there is; usage: "
                    "kolo-inspect {}",
                    paths[1], kExportUsage));
  write_model(paths[0], paths[1]);
}

const RegisterInspectCommand export_command(
    "export", {kExportUsage, "the network of a checkpoint folder for other programs, as ONNX", export_model});

}  // namespace
}  // namespace kolo::launcher
