#include <kolo/launcher/inspect_command.h>

#include <fmt/core.h>

#include <boost/program_options.hpp>

#include <kolo/core/base/text.h>

namespace kolo::launcher {

namespace po = boost::program_options;

bool asks_for_help(std::string_view word) { return word == "--help" || word == "-h"; }

OnePath parse_one_path(const std::vector<std::string>& words, const std::vector<std::string>& flags,
                       const std::string& usage) {
  po::options_description all;
  all.add_options()("help,h", "")("path", po::value<std::vector<std::string>>());
  std::vector<std::string> known = {"--help"};
  for (const std::string& flag : flags) {
    all.add_options()(flag.c_str(), "");
    known.push_back("--" + flag);
  }
  po::positional_options_description positional;
  positional.add("path", -1);
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::variables_map values;
    po::store(po::command_line_parser(words).options(all).positional(positional).style(style).run(), values);
    OnePath parsed;
    parsed.help = values.count("help") > 0;
    if (parsed.help) return parsed;
    for (const std::string& flag : flags)
      if (values.count(flag) > 0) parsed.flags.push_back(flag);
    const auto paths =
        values.count("path") > 0 ? values["path"].as<std::vector<std::string>>() : std::vector<std::string>();
    if (paths.size() != 1)
      throw CommandLineError(fmt::format("{} paths given; usage: kolo-inspect {}", paths.size(), usage));
    parsed.path = paths[0];
    return parsed;
  } catch (const po::unknown_option& error) {
    throw CommandLineError(fmt::format("unknown option {}{}; usage: kolo-inspect {}", error.get_option_name(),
                                       did_you_mean(error.get_option_name(), known), usage));
  } catch (const po::error& error) {
    throw CommandLineError(fmt::format("{}; usage: kolo-inspect {}", error.what(), usage));
  }
}

}  // namespace kolo::launcher
