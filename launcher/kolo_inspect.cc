// kolo-inspect: looks into the files that a training leaves behind. One file for each of its sub-commands;
// see inspect_command.h.
#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <kolo/core/base/text.h>
#include <kolo/launcher/inspect_command.h>

namespace kolo::launcher {
namespace {

constexpr int kBadCommandLine = 2;

std::map<std::string, InspectCommand>& registry() {
  static std::map<std::string, InspectCommand> commands;
  return commands;
}

std::string help_text() {
  std::string text = "Usage: kolo-inspect COMMAND …\n\n";
  for (const auto& [name, command] : inspect_commands())
    text += fmt::format("  kolo-inspect {}\n      {}\n", command.usage, command.summary);
  return text + "\n  kolo-inspect --help | -h | --version\n";
}

void run(const std::vector<std::string>& words) {
  if (words.empty()) throw CommandLineError("the command is missing (kolo-inspect --help lists them)");
  if (asks_for_help(words[0])) return fmt::print("{}", help_text());
  if (words[0] == "--version") return fmt::print("kolo-inspect {}\n", KOLO_VERSION);
  const auto command = inspect_commands().find(words[0]);
  if (command != inspect_commands().end()) return command->second.run({words.begin() + 1, words.end()});
  std::vector<std::string> names;
  for (const auto& [name, known] : inspect_commands()) names.push_back(name);
  throw CommandLineError(fmt::format("unknown command \"{}\"{} (kolo-inspect --help lists them)", words[0],
                                     did_you_mean(words[0], names)));
}

int guarded_main(const std::vector<std::string>& words) {
  int code = 1;
  try {
    run(words);
    if (std::fflush(stdout) == 0) return 0;
    fmt::print(stderr, "kolo-inspect: stdout cannot be written\n");
  } catch (const CommandLineError& error) {
    fmt::print(stderr, "kolo-inspect: {}\n", error.what());
    code = kBadCommandLine;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kolo-inspect: {}\n", error.what());
  }
  return code;
}

}  // namespace

RegisterInspectCommand::RegisterInspectCommand(const std::string& name, InspectCommand command) {
  registry()[name] = std::move(command);
}

const std::map<std::string, InspectCommand>& inspect_commands() { return registry(); }

}  // namespace kolo::launcher

int main(int argc, char** argv) { return kolo::launcher::guarded_main({argv + 1, argv + argc}); }
