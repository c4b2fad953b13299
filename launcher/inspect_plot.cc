// kolo-inspect plot: curves of trainings as a page.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <kolo/core/base/text.h>
#include <kolo/launcher/inspect_command.h>
#include <kolo/launcher/plot_page.h>

namespace kolo::launcher {
namespace {

constexpr char kPlotUsage[] = "plot DIR… > plot.html";

void print_plot_help() {
  fmt::print(
      "Usage: kolo-inspect {}\n\n"
      "Writes one HTML page with charts to stdout: loss, accuracy, learning rate, samples per second, and "
      "the\n"
      "share of communication in a step, by rank. It needs no other file and no network.\n"
      "DIR: a folder of kolo-train --log-dir, or a CSV file of Keras' CSVLogger (CSVs make all go by "
      "epochs).\n"
      "Several trainings are drawn over each other.\n",
      kPlotUsage);
}

void plot(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--help") return print_plot_help();
    if (word.starts_with("--"))
      throw CommandLineError(fmt::format("unknown option {}{}; usage: kolo-inspect {}", word,
                                         did_you_mean(word, {"--help"}), kPlotUsage));
  }
  if (words.empty())
    throw CommandLineError(fmt::format("no folder given; usage: kolo-inspect {}", kPlotUsage));
  const bool by_epoch = std::any_of(words.begin(), words.end(), is_csv);
  std::vector<TrainingRun> runs;
  for (const std::string& path : words) runs.push_back(read_training(path, by_epoch));
  fmt::print("{}", plot_page(runs));
}

const RegisterInspectCommand plot_command("plot", {kPlotUsage, "curves of trainings as a page", plot});

}  // namespace
}  // namespace kolo::launcher
