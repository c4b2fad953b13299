// The sub-commands of kolo-inspect. Each is one file that registers itself; kolo_inspect.cc finds it by its
// name.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::launcher {

/// A command line that cannot be: exit code 2.
class CommandLineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// --help or -h.
bool asks_for_help(std::string_view word);

/// What stands behind the name of a command that looks at one path.
struct OnePath {
  std::string path;
  std::vector<std::string> flags;  // those given, without dashes, in the order of parse_one_path's `flags`
  bool help = false;               // then nothing else is looked at
};

/// words: a path and any of `flags`, in any order, or a word that asks for help. Throws CommandLineError that
/// ends in `usage` for unknown options and for more or fewer than one path.
OnePath parse_one_path(const std::vector<std::string>& words, const std::vector<std::string>& flags,
                       const std::string& usage);

struct InspectCommand {
  std::string usage;    // "checkpoint PATH [--json]"
  std::string summary;  // one line
  /// With the words after the command's name. Writes its result to stdout. Throws CommandLineError, or any
  /// other exception for exit code 1.
  std::function<void(const std::vector<std::string>&)> run;
};

/// A namespace-scope constant of the command's file.
struct RegisterInspectCommand {
  RegisterInspectCommand(const std::string& name, InspectCommand command);
};
/// By name.
const std::map<std::string, InspectCommand>& inspect_commands();

}  // namespace kolo::launcher
