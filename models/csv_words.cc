#include <kolo/models/csv_words.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/models/alike_names.h>
#include <kolo/models/csv_columns.h>
#include <kolo/models/csv_fields.h>
#include <kolo/models/unknown_labels.h>

namespace kolo::models::detail {
namespace {

constexpr std::size_t kMostWords = 1000;      // of a column
constexpr std::size_t kMostUnknownWords = 8;  // told of a column
constexpr std::size_t kFewWords = 20;         // may well be as many as rows

// "1 100,5", "12 %", "$5": more digits than other characters but separators.
bool looks_like_number(const std::string& word) {
  // Blanks that break no line, the minus of typesetters, apostrophes and euros.
  constexpr std::string_view kMarks[] = {"\u00a0", "\u202f", "\u2009", "\u2212", "\u2019", "\u20ac"};
  std::int64_t digits = 0;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const auto mark = std::find_if(std::begin(kMarks), std::end(kMarks), [&](std::string_view one) {
      return std::string_view(word).substr(at).starts_with(one);
    });
    if (word[at] >= '0' && word[at] <= '9') ++digits;
    else if (mark != std::end(kMarks)) at += mark->size() - 1;
    else if (std::string_view(" .,'+%$_()").find(word[at]) == std::string_view::npos &&
             !(word[at] == '-' && at == 0))
      return false;
  }
  return digits > 0;
}

// What of a column's words may be meant as numbers. Those that kolo reads stand beside others that it does
// not, and of these it tells.
std::string text_of_numbers(const std::vector<std::string>& words) {
  const auto is_read = [](const std::string& word) { return may_be_number(word); };
  const auto unread = std::find_if(words.begin(), words.end(), [&](const std::string& word) {
    return looks_like_number(word) && !is_read(word);
  });
  if (unread != words.end())
    return fmt::format(" (some may be meant as numbers, such as {:?}, which kolo cannot read)", *unread);
  const auto read = std::find_if(words.begin(), words.end(), is_read);
  const auto other = std::find_if_not(words.begin(), words.end(), is_read);
  if (read == words.end() || other == words.end()) return "";
  return fmt::format(" (some are numbers, such as {:?}, and {:?} is none)", *read, *other);
}

}  // namespace

ColumnWords::ColumnWords(TableColumn& column, const Options& options) : column_(column), options_(options) {
  for (const std::string& word : column_.words)
    numbers_.emplace(word, static_cast<std::int32_t>(numbers_.size()));
}

void ColumnWords::take(const CsvFile& file, std::size_t place, const Fields& fields) {
  const std::string_view field = fields[place];
  if (!is_empty_cell(field)) {
    if (!options_.is_split) take_word(file, place, unquoted(field));
    else
      for (std::string& word : parts_of(unquoted(field), '|')) take_word(file, place, std::move(word));
  }
  ends_.push_back(found_.size());
}

void ColumnWords::take_word(const CsvFile& file, std::size_t place, std::string word) {
  // 1.0 is the class 1, and 007 is no 7, but for columns whose words an earlier version has found.
  if (const auto value = number_in(word, file.separator() != ',');
      value && *value == std::floor(*value) && std::abs(*value) < 1e15)
    if (std::string plain = std::to_string(static_cast<std::int64_t>(*value));
        word.find_first_of(".,") != std::string::npos ||
        (!numbers_.contains(word) && numbers_.contains(plain) && options_.is_known))
      word = std::move(plain);
  if (const auto found = numbers_.find(word); found != numbers_.end()) {
    found_.push_back(found->second);
  } else if (!options_.is_known) {
    found_.push_back(static_cast<std::int32_t>(numbers_.size()));
    numbers_.emplace(std::move(word), found_.back());
    if (numbers_.size() > kMostWords) throw_too_many(file);
  } else {
    if (unknown_.empty()) first_unknown_ = word;
    Unknown& unknown = unknown_[word];
    if (++unknown.count == 1) unknown.first = {.file = file.name(), .line = file.line(), .column = place};
  }
}

void ColumnWords::throw_too_many(const CsvFile& file) const {
  throw InvalidArgumentError("{}, line {}: column {} has more than {} words; {}", file.name(), file.line(),
                             column_text(column_.place, column_.name), kMostWords,
                             options_.is_label ? "a label has fewer, and --target names another column"
                                               : ignore_text(column_.place, column_.name));
}

void ColumnWords::check_labels() const {
  if (!options_.is_label || unknown_.empty()) return;
  const CellPlace& first = unknown_.at(first_unknown_).first;
  UnknownLabels labels{.file = first.file,
                       .trained = options_.trained,
                       .counts = {},
                       .classes = column_.words,
                       .what = options_.is_split ? "label" : "class"};
  for (const auto& [word, unknown] : unknown_) labels.counts[word] = unknown.count;
  for (const std::int32_t number : std::set<std::int32_t>(found_.begin(), found_.end()))
    labels.others.push_back(column_.words[static_cast<std::size_t>(number)]);
  throw InvalidArgumentError("{}, line {}: label {:?} {}", first.file, first.line, first_unknown_,
                             unknown_labels_text(labels));
}

std::vector<std::string> ColumnWords::warnings(const CellPlace& first_word) const {
  const std::string column = column_text(column_.place, column_.name);
  std::vector<std::string> warnings;
  for (std::string one : {warning_of_many(first_word),
                          warning_of_alike(fmt::format("column {}: the words", column), column_.words)})
    if (!one.empty() && !options_.is_known) warnings.push_back(std::move(one));
  return warnings;
}

std::string ColumnWords::warning_of_unknown() const {
  std::int64_t count = 0;
  for (const auto& [word, unknown] : unknown_) count += unknown.count;
  if (options_.is_label || !options_.is_known || count <= std::ssize(found_)) return "";
  std::vector<std::string> some;
  for (const std::string& word : column_.words)
    if (some.size() < kMostUnknownWords) some.push_back(fmt::format("{:?}", word));
  const bool are_all = some.size() == column_.words.size();
  return fmt::format("column {}: {} of {} are none of the training's, such as {:?} in line {}; it had {}{}{}",
                     column_text(column_.place, column_.name), count,
                     count_of(count + std::ssize(found_), "word"), first_unknown_,
                     unknown_.at(first_unknown_).first.line, fmt::join(some, ", "),
                     are_all ? "" : " and others", alike_text(first_unknown_, column_.words));
}

std::string ColumnWords::warning_of_many(const CellPlace& first_word) const {
  const std::size_t count = column_.words.size();
  if (options_.is_split) return "";
  if (count < kFewWords || 2 * count <= found_.size()) return warning_of_numbers(first_word);
  const std::string meant = fmt::format(", such as {:?} in line {}{}", first_word.text, first_word.line,
                                        text_of_numbers(column_.words));
  const std::string column = column_text(column_.place, column_.name);
  if (options_.is_label)
    return fmt::format("the label, column {}, has {} classes in {} rows{}; --target names another column",
                       column, count, found_.size(), meant);
  return fmt::format(
      "column {} is one of words, with {} different ones in {} rows{}, of which a model learns little; {}",
      column, count, found_.size(), meant, ignore_text(column_.place, column_.name));
}

// Of a column of few words, most of which are no other words than numbers.
std::string ColumnWords::warning_of_numbers(const CellPlace& first_word) const {
  const auto& words = column_.words;
  const auto unread = std::count_if(words.begin(), words.end(), [](const std::string& word) {
    return looks_like_number(word) && !may_be_number(word);
  });
  // Numbers among other words may be those of categories, where these are few.
  constexpr std::int64_t kFewNumbers = 5;
  const auto read =
      std::count_if(words.begin(), words.end(), [](const std::string& word) { return may_be_number(word); });
  const bool are_numbers = 2 * unread > std::ssize(words) ||
                           (2 * read > std::ssize(words) && read >= kFewNumbers && read < std::ssize(words));
  if (words.size() < 3 || !are_numbers) return "";
  return fmt::format("column {} is one of words, such as {:?} in line {}{}",
                     column_text(column_.place, column_.name), first_word.text, first_word.line,
                     text_of_numbers(words));
}

void ColumnWords::finish() {
  check_labels();
  if (options_.is_known) return;
  const std::map<std::string, std::int32_t> sorted(numbers_.begin(), numbers_.end());
  std::vector<std::int32_t> places(sorted.size());
  for (const auto& [word, number] : sorted) {
    places[static_cast<std::size_t>(number)] = static_cast<std::int32_t>(column_.words.size());
    column_.words.push_back(word);
  }
  for (std::int32_t& number : found_) number = places[static_cast<std::size_t>(number)];
}

std::span<const std::int32_t> ColumnWords::of_row(std::size_t row) const {
  const std::size_t begin = row == 0 ? 0 : ends_[row - 1];
  return std::span(found_).subspan(begin, ends_[row] - begin);
}

std::vector<std::string> ColumnWords::notes(bool of_several_files) const {
  std::vector<std::string> notes;
  if (options_.is_label) return notes;
  if (!options_.is_known)
    notes.push_back(fmt::format("{} in column {}", count_of(column_.words.size(), "word"),
                                column_text(column_.place, column_.name)));
  for (const auto& [word, unknown] : unknown_) {
    if (notes.size() == kMostUnknownWords) {
      notes.push_back(
          fmt::format("and {}", count_of(unknown_.size() - kMostUnknownWords, "other unknown word")));
      break;
    }
    notes.push_back(fmt::format("{} of the unknown word {:?} ({})", unknown.count, word,
                                place_text(unknown.first, of_several_files)));
  }
  return notes;
}

}  // namespace kolo::models::detail
