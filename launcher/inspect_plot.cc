// kolo-inspect plot: curves of trainings as a page.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/text.h>
#include <kolo/launcher/inspect_command.h>
#include <kolo/launcher/plot_page.h>
#include <kolo/launcher/training_logs.h>

namespace kolo::launcher {
namespace {

constexpr char kPlotUsage[] = "plot PATH… > plot.html, or plot PATH… --watch FILE.html";
constexpr int kSecondsBetweenPages = 5;

void print_plot_help() {
  fmt::print(
      "Usage: kolo-inspect {}\n\n"
      "Writes one HTML page with charts to stdout: loss, accuracy, learning rate, samples per second, and "
      "the\n"
      "share of communication in a step, by rank. It needs no other file and no network.\n"
      "PATH: a folder of kolo-train --log-dir, a folder with such folders or CSV logs below it (up to {}\n"
      "folders deep, {} logs), or a CSV file with a header, of any suffix. A CSV's x is its column\n"
      "global_step, step or epoch, else the row's number. Several trainings are drawn over each other, by\n"
      "steps where all logs know them, else by epochs.\n"
      "  --watch FILE.html   write FILE.html again every {} seconds until Ctrl-C or SIGTERM; the browser\n"
      "                      that shows it loads it again\n",
      kPlotUsage, kDeepestLog, kMostLogs, kSecondsBetweenPages);
}

// SIGINT and SIGTERM wait until they are asked for. A SIGINT that is ignored, as in a shell's background,
// stays so.
class HeldStopSignals {
 public:
  HeldStopSignals() {
    struct sigaction old = {};
    sigaction(SIGINT, nullptr, &old);
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    if (old.sa_handler != SIG_IGN) sigaddset(&signals_, SIGINT);
    sigprocmask(SIG_BLOCK, &signals_, nullptr);
  }
  /// True as soon as one has come.
  bool come_within(std::chrono::seconds time) const {
    const timespec limit = {.tv_sec = time.count(), .tv_nsec = 0};
    return sigtimedwait(&signals_, nullptr, &limit) > 0;
  }

 private:
  sigset_t signals_;
};

void watch(const std::vector<std::string>& paths, const std::string& file) {
  const HeldStopSignals stop;
  std::vector<std::string> told;
  bool first = true;
  do {
    TrainingLogs logs = read_logs(paths);
    logs.notes.insert(logs.notes.begin(), logs.failures.begin(), logs.failures.end());
    write_durable_file(file, plot_page(logs.runs, {kSecondsBetweenPages, logs.notes}));
    if (first) fmt::print("{} shows {} trainings; Ctrl-C ends\n", file, logs.runs.size());
    std::fflush(stdout);
    if (logs.notes != told)
      for (const std::string& note : logs.notes) fmt::print(stderr, "kolo-inspect: {}\n", note);
    told = logs.notes;
    first = false;
  } while (!stop.come_within(std::chrono::seconds(kSecondsBetweenPages)));
}

struct PlotCommand {
  std::vector<std::string> paths = {};
  std::string watched = {};  // "": to stdout
  bool help = false;
};

PlotCommand parse_plot(const std::vector<std::string>& words) {
  PlotCommand command;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (asks_for_help(words[i])) return {.help = true};
    if (words[i] == "--watch") {
      if (++i == words.size() || words[i].empty() || words[i].starts_with("--"))
        throw CommandLineError(
            fmt::format("--watch needs the file to write; usage: kolo-inspect {}", kPlotUsage));
      command.watched = words[i];
    } else if (words[i].starts_with("--")) {
      throw CommandLineError(fmt::format("unknown option {}{}; usage: kolo-inspect {}", words[i],
                                         did_you_mean(words[i], {"--help", "--watch"}), kPlotUsage));
    } else {
      command.paths.push_back(words[i]);
    }
  }
  if (command.paths.empty())
    throw CommandLineError(fmt::format("no folder given; usage: kolo-inspect {}", kPlotUsage));
  return command;
}

void plot(const std::vector<std::string>& words) {
  const PlotCommand command = parse_plot(words);
  if (command.help) return print_plot_help();
  if (!command.watched.empty()) return watch(command.paths, command.watched);
  const TrainingLogs logs = read_logs(command.paths);
  if (!logs.failures.empty()) throw std::runtime_error(logs.failures[0]);
  for (const std::string& note : logs.notes) fmt::print(stderr, "kolo-inspect: {}\n", note);
  fmt::print("{}", plot_page(logs.runs, {.notes = logs.notes}));
}

const RegisterInspectCommand plot_command("plot", {kPlotUsage, "curves of trainings as a page", plot});

}  // namespace
}  // namespace kolo::launcher
