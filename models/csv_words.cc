#include <kolo/models/csv_words.h>

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/models/csv_columns.h>
#include <kolo/models/csv_fields.h>

namespace kolo::models::detail {
namespace {

constexpr std::size_t kMostWords = 1000;      // of a column
constexpr std::size_t kMostUnknownWords = 8;  // told of a column

}  // namespace

ColumnWords::ColumnWords(TableColumn& column, const Options& options) : column_(column), options_(options) {
  for (const std::string& word : column_.words)
    numbers_.emplace(word, static_cast<std::int32_t>(numbers_.size()));
}

void ColumnWords::take(const CsvFile& file, std::string_view field) {
  if (!is_empty_cell(field)) {
    if (!options_.is_split) take_word(file, unquoted(field));
    else
      for (std::string& word : parts_of(unquoted(field), '|')) take_word(file, std::move(word));
  }
  ends_.push_back(found_.size());
}

void ColumnWords::take_word(const CsvFile& file, std::string word) {
  if (const auto value = number_in(word, file.separator() != ',');
      value && *value == std::floor(*value) && std::abs(*value) < 1e15)
    word = std::to_string(static_cast<std::int64_t>(*value));  // 1.0 is the class 1
  if (const auto found = numbers_.find(word); found != numbers_.end()) {
    found_.push_back(found->second);
  } else if (!options_.is_known) {
    found_.push_back(static_cast<std::int32_t>(numbers_.size()));
    numbers_.emplace(std::move(word), found_.back());
    if (numbers_.size() > kMostWords) throw_too_many(file);
  } else if (options_.is_label) {
    throw InvalidArgumentError("{}, line {}: label {:?} is none of the {} {}, {}", file.name(), file.line(),
                               word, column_.words.size(), options_.is_split ? "labels" : "classes",
                               fmt::join(column_.words, ", "));
  } else {
    ++unknown_[word];
  }
}

void ColumnWords::throw_too_many(const CsvFile& file) const {
  throw InvalidArgumentError(
      "{}, line {}: column {} has more than {} words; {}", file.name(), file.line(),
      column_text(column_.place, column_.name), kMostWords,
      options_.is_label ? "a label has fewer, and --target names another column"
                        : fmt::format("--ignore {} leaves it out",
                                      column_.name.empty() || column_.name.find(',') != std::string::npos
                                          ? std::to_string(column_.place + 1)
                                          : column_.name));
}

void ColumnWords::finish() {
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

std::vector<std::string> ColumnWords::notes() const {
  std::vector<std::string> notes;
  if (options_.is_label) return notes;
  if (!options_.is_known)
    notes.push_back(
        fmt::format("{} words in column {}", column_.words.size(), column_text(column_.place, column_.name)));
  for (const auto& [word, count] : unknown_) {
    if (notes.size() == kMostUnknownWords) {
      notes.push_back(fmt::format("and {} other unknown words", unknown_.size() - kMostUnknownWords));
      break;
    }
    notes.push_back(fmt::format("{} of the unknown word {:?}", count, word));
  }
  return notes;
}

}  // namespace kolo::models::detail
