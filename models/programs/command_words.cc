#include <kolo/models/programs/command_words.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <kolo/core/base/text.h>
#include <kolo/models/programs/train_switches.h>

namespace kolo::models {
namespace {

namespace po = boost::program_options;

constexpr std::string_view kEnds = "--no-";

std::vector<std::string> option_names(const po::options_description& described) {
  std::vector<std::string> names;
  for (const auto& option : described.options()) names.push_back("--" + option->long_name());
  return names;
}

// The option that the word is, with its value or without.
const po::option_description* option_of(const std::string& word, const po::options_description& described) {
  if (!word.starts_with("--")) return nullptr;
  return described.find_nothrow(word.substr(2, word.find('=') - 2), false);
}

// boost takes any word for the value of an option that needs one.
void check_values(const std::vector<std::string>& words, const po::options_description& described) {
  for (std::size_t i = 0; i + 1 < words.size() && words[i] != "--"; ++i) {
    const auto* const option = option_of(words[i], described);
    const bool needs_word =
        option != nullptr && words[i].find('=') == std::string::npos && option->semantic()->min_tokens() > 0;
    if (needs_word && option_of(words[i + 1], described) != nullptr)
      throw UsageError(fmt::format("{} needs a value, and the option {} follows it", words[i], words[i + 1]));
  }
}

}  // namespace

std::vector<std::string> take_ended(std::vector<std::string>& words) {
  std::vector<std::string> ended;
  const auto end = std::find(words.begin(), words.end(), "--");
  const auto taken = std::remove_if(words.begin(), end, [&](const std::string& word) {
    if (!word.starts_with(kEnds)) return false;
    ended.push_back(word.substr(kEnds.size()));
    if (!can_end(ended.back())) {
      std::vector<std::string> all;
      for (const char* const name : kSwitchesThatEnd) all.push_back(std::string(kEnds) + name);
      throw UsageError(
          fmt::format("there is no option {}{} (known: {})", word, did_you_mean(word, all), joined(all)));
    }
    return true;
  });
  words.erase(taken, end);
  return ended;
}

void store_words(const std::vector<std::string>& words, const po::options_description& described,
                 po::variables_map& values) {
  check_values(words, described);
  po::positional_options_description paths;
  paths.add("predict", -1);
  const bool predicts = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "--predict" || word.starts_with("--predict=");
  });
  try {
    // No abbreviations: an option added later would change what they mean.
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    const auto parsed =
        po::command_line_parser(words).options(described).positional(paths).style(style).run();
    for (const auto& option : parsed.options)
      if (!predicts && option.position_key >= 0)
        throw UsageError(
            fmt::format("{:?} stands without an option before it; --data takes what a model learns from, and "
                        "--predict what it is to predict",
                        option.value.front()));
    po::store(parsed, values);
  } catch (const po::unknown_option& error) {
    throw UsageError(fmt::format("there is no option {}{}", error.get_option_name(),
                                 did_you_mean(error.get_option_name(), option_names(described))));
  } catch (const po::error& error) {
    throw UsageError(fmt::format("{}; see kolo-train --help", error.what()));
  }
}

Switches switches_in(const po::variables_map& values) {
  Switches switches;
  for (const auto& [name, value] : values) {
    if (const auto* text = boost::any_cast<std::string>(&value.value())) switches[name] = *text;
    else if (const auto* flag = boost::any_cast<bool>(&value.value()); flag == nullptr || *flag)
      switches[name] = "";
  }
  return switches;
}

std::vector<std::string> words_of(const Switches& switches, const po::options_description& described) {
  std::vector<std::string> words;
  for (const auto& [name, value] : switches) {
    const auto* const option = described.find_nothrow(name, false);
    if (option == nullptr) continue;
    words.push_back("--" + name);
    if (option->semantic()->max_tokens() > 0) words.back() += "=" + value;
  }
  return words;
}

}  // namespace kolo::models
