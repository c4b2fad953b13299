#include <bench/command_line.h>

#include <fmt/format.h>

#include <sstream>

#include <kolo/core/base/text.h>

namespace kolo::bench {

namespace po = boost::program_options;

po::options_description common_options() {
  po::options_description all("All");
  all.add_options()("json", po::bool_switch(), "one JSON object a line on stdout")(
      "help,h", po::bool_switch(), "this text")("version", po::bool_switch(), "name and version");
  return all;
}

po::variables_map parse(const po::options_description& of_command, int argc, const char* const* argv) {
  po::options_description all;
  all.add(of_command).add(common_options());
  po::variables_map values;
  try {
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(argc, argv).options(all).positional({}).style(style).run(), values);
  } catch (const po::unknown_option& error) {
    std::vector<std::string> names;
    for (const auto& option : all.options()) names.push_back("--" + option->long_name());
    throw UsageError(fmt::format("there is no option {}{}", error.get_option_name(),
                                 did_you_mean(error.get_option_name(), names)));
  } catch (const po::error& error) {
    throw UsageError(fmt::format("{}; see kolo-bench --help", error.what()));
  }
  return values;
}

std::int64_t count(const char* option, const std::string& text, std::int64_t least, std::int64_t most) {
  const auto value = parse_int64(text);
  if (!value || *value < least || *value > most)
    throw UsageError(fmt::format("--{} \"{}\" is not valid; it must be a whole number from {} to {}", option,
                                 text, least, most));
  return *value;
}

double share_of(const po::variables_map& values, const char* option) {
  const auto text = values[option].as<std::string>();
  const auto share = parse_double(text);
  if (!share || !(*share >= 0 && *share < 1))
    throw UsageError(
        fmt::format("--{} \"{}\" is not valid; it must be a number from 0 to below 1", option, text));
  return *share;
}

double seconds_of(const po::variables_map& values) {
  const auto text = values["seconds"].as<std::string>();
  const auto seconds = parse_double(text);
  if (!seconds || *seconds <= 0)
    throw UsageError(fmt::format("--seconds \"{}\" is not valid; it must be a number above 0", text));
  return *seconds;
}

// The items of an option's list, at least one.
std::vector<std::string> items_of(const po::variables_map& values, const char* option) {
  std::vector<std::string> items;
  std::istringstream text(values[option].as<std::string>());
  for (std::string item; std::getline(text, item, ',');) items.push_back(item);
  if (items.empty())
    throw UsageError(fmt::format("--{} \"\" is not valid; it must be a list with commas between", option));
  return items;
}

}  // namespace kolo::bench
