#include <kolo/models/data.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/models/csv_columns.h>
#include <kolo/models/csv_fields.h>
#include <kolo/models/csv_file.h>

namespace kolo::models {
namespace {

using detail::column_text;
using detail::Fields;
using detail::is_empty_cell;
using detail::number_in;
using File = detail::CsvFile;

constexpr std::size_t kMostWords = 1000;      // of a column
constexpr std::size_t kMostUnknownWords = 8;  // told of a column
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

// What the cells of a column are, and where those stand that may be wrong.
struct Cells {
  std::int64_t numbers = 0, words = 0, empty = 0;
  double sum = 0;
  const File* word_file = nullptr;  // of the first word
  std::int64_t word_line = 0, empty_line = 0;
  std::string word;
  const File* empty_file = nullptr;
  std::size_t word_place = 0, empty_place = 0;

  bool is_of_words() const { return words > numbers; }
};

class Reader {
 public:
  Reader(const std::vector<std::filesystem::path>& paths, const CsvOptions& options) : options_(options) {
    for (const auto& path : paths) files_.emplace_back(path);
  }

  CsvTable read() {
    detail::CsvColumns found = detail::find_columns(files_, options_);
    schema_ = std::move(found.schema);
    notes_ = std::move(found.notes);
    cells_.resize(schema_.features.size() + 1);
    for (File& file : files_) scan(file);
    if (lines_.empty()) throw InvalidArgumentError("{}: there are no samples in it", files_.front().name());
    decide();
    find_words();
    return table();
  }

 private:
  std::size_t features() const { return schema_.features.size(); }
  bool is_label(std::size_t column) const { return column == features(); }
  const TableColumn& column(std::size_t i) const { return is_label(i) ? schema_.label : schema_.features[i]; }
  TableColumn& column(std::size_t i) { return is_label(i) ? schema_.label : schema_.features[i]; }

  // The numbers of each row, and what the others are.
  void scan(File& file) {
    const bool decimal_comma = file.separator() != ',';
    Fields fields;
    while (file.next(fields)) {
      if (fields.size() != file.columns)
        throw InvalidArgumentError("{}, line {}: {} columns; the first line has {}", file.name(), file.line(),
                                   fields.size(), file.columns);
      bool is_whole = true;
      for (std::size_t i = 0; i <= features(); ++i) {
        if (is_label(i) && !file.label) continue;
        const std::size_t place = is_label(i) ? *file.label : file.places[i];
        const std::string_view field = fields[place];
        const auto value = number_in(field, decimal_comma);
        const bool is_empty = !value && is_empty_cell(field);
        if (decimal_comma && value && field.find(',') != std::string_view::npos) ++decimal_commas_;
        is_whole &= !is_empty;
        note_cell(cells_[i], value, is_empty, {file, place, field});
        if (!is_label(i)) values_.push_back(value ? static_cast<float>(*value) : kNoNumber);
        else labels_.push_back(value.value_or(-1));
      }
      lines_.push_back(file.line());
      kept_.push_back(is_whole || missing() != MissingCells::drop);
    }
    ends_.push_back(lines_.size());
    if (!decimal_comma || options_.known || &file != &files_.front()) return;
    notes_.push_back(file.separator() == ';' ? "fields between \";\"" : "fields between tabs");
    if (decimal_commas_ > 0)
      notes_.back() += fmt::format(", {} numbers with decimal commas", decimal_commas_);
  }

  MissingCells missing() const { return schema_.missing; }

  struct Place {
    const File& file;
    std::size_t column;
    std::string_view field;
  };
  static void note_cell(Cells& cells, const std::optional<double>& value, bool is_empty, const Place& at) {
    if (value) {
      ++cells.numbers;
      cells.sum += *value;
    } else if (is_empty) {
      if (++cells.empty > 1) return;
      cells.empty_file = &at.file, cells.empty_line = at.file.line(), cells.empty_place = at.column;
    } else {
      if (detail::is_out_of_range(at.field)) ++cells.numbers;  // a wrong number, and not a category
      if (++cells.words > 1) return;
      cells.word_file = &at.file, cells.word_line = at.file.line(), cells.word_place = at.column;
      cells.word = at.field.substr(0, 40);
    }
  }

  // Which columns are of words, and whether all cells may be what they are.
  void decide() {
    for (std::size_t i = 0; i <= features(); ++i) {
      const Cells& cells = cells_[i];
      if (is_label(i) && !options_.labelled) continue;
      const bool is_of_words = options_.known ? !column(i).words.empty() : cells.is_of_words();
      if (is_of_words) words_.emplace(i, Words{});
      if (cells.empty > 0 &&
          (missing() == MissingCells::refuse || (is_label(i) && missing() != MissingCells::drop)))
        throw InvalidArgumentError(
            "{}, line {}, column {}: an empty cell; {}", cells.empty_file->name(), cells.empty_line,
            cells.empty_place + 1,
            is_label(i)      ? "a sample needs its label, and --missing drop leaves such lines out"
            : options_.known ? "a training with --missing mean, zero or drop takes it"
                             : "--missing mean or zero fills it, and --missing drop leaves such lines out");
      if (!is_of_words && cells.words > 0)
        throw InvalidArgumentError("{}, line {}, column {}: {:?} is no number that f32 holds",
                                   cells.word_file->name(), cells.word_line, cells.word_place + 1,
                                   cells.word);
      if (options_.known || is_of_words || is_label(i)) continue;
      if (cells.numbers == 0)
        throw InvalidArgumentError("{}: column {} is empty; --ignore {} leaves it out", files_.front().name(),
                                   column(i).place + 1, column(i).place + 1);
      column(i).mean = static_cast<float>(cells.sum / static_cast<double>(cells.numbers));
    }
  }

  // The words of a column as numbers, row by row; −1: empty, or unknown.
  struct Words {
    std::unordered_map<std::string, std::int32_t> numbers = {};
    std::vector<std::int32_t> of_rows = {};
    std::map<std::string, std::int64_t> unknown = {};
  };

  void find_words() {
    if (words_.empty()) return;
    for (auto& [i, words] : words_)
      for (const std::string& word : column(i).words)
        words.numbers.emplace(word, static_cast<std::int32_t>(words.numbers.size()));
    Fields fields;
    for (File& file : files_) {
      file.rewind();
      if (file.has_names) file.next(fields);
      while (file.next(fields))
        for (auto& [i, words] : words_)
          take_word(i, words, file, fields[is_label(i) ? *file.label : file.places[i]]);
    }
    if (!options_.known)
      for (auto& [i, words] : words_) sort_words(i, words);
  }

  void take_word(std::size_t i, Words& words, const File& file, std::string_view field) {
    std::string word = unquoted(field);
    std::int32_t number = -1;
    if (is_empty_cell(field)) {
      words.of_rows.push_back(number);
      return;
    }
    if (const auto value = number_in(field, file.separator() != ',');
        value && *value == std::floor(*value) && std::abs(*value) < 1e15)
      word = std::to_string(static_cast<std::int64_t>(*value));  // 1.0 is the class 1
    if (const auto found = words.numbers.find(word); found != words.numbers.end()) {
      number = found->second;
    } else if (!options_.known) {
      number = static_cast<std::int32_t>(words.numbers.size());
      words.numbers.emplace(std::move(word), number);
      if (words.numbers.size() > kMostWords) throw_too_many_words(i, file);
    } else if (is_label(i)) {
      throw InvalidArgumentError("{}, line {}: label {:?} is none of the {} classes, {}", file.name(),
                                 file.line(), word, column(i).words.size(), fmt::join(column(i).words, ", "));
    } else {
      ++words.unknown[word];
    }
    words.of_rows.push_back(number);
  }

  [[noreturn]] void throw_too_many_words(std::size_t i, const File& file) const {
    const TableColumn& full = column(i);
    throw InvalidArgumentError(
        "{}, line {}: column {} has more than {} words; {}", file.name(), file.line(),
        column_text(full.place, full.name), kMostWords,
        is_label(i) ? "a label has fewer, and --target names another column"
                    : fmt::format("--ignore {} leaves it out",
                                  full.name.empty() ? std::to_string(full.place + 1) : full.name));
  }

  // Sorted, so that they do not depend on the order of the lines.
  void sort_words(std::size_t i, Words& words) {
    std::map<std::string, std::int32_t> sorted(words.numbers.begin(), words.numbers.end());
    std::vector<std::int32_t> places(sorted.size());
    for (const auto& [word, number] : sorted) {
      places[static_cast<std::size_t>(number)] = static_cast<std::int32_t>(column(i).words.size());
      column(i).words.push_back(word);
    }
    for (std::int32_t& number : words.of_rows)
      if (number >= 0) number = places[static_cast<std::size_t>(number)];
  }

  CsvTable table() {
    decide_regression();
    const std::int64_t rows = std::count(kept_.begin(), kept_.end(), true);
    if (rows == 0)
      throw InvalidArgumentError("{}: there are no samples without empty cells in it", files_.front().name());
    CsvTable made{.x = Tensor::zeros(DType::f32, {rows, schema_.elements()}), .y = labels(rows), .note = {}};
    float* to = made.x.data<float>();
    for (std::size_t row = 0; row < lines_.size(); ++row) {
      if (!kept_[row]) continue;
      made.lines.push_back(lines_[row]);
      for (std::size_t i = 0; i < features(); ++i) {
        const TableColumn& feature = schema_.features[i];
        const float value = values_[row * features() + i];
        if (const auto words = words_.find(i); words != words_.end()) {
          if (const std::int32_t number = words->second.of_rows[row]; number >= 0) to[number] = 1;
        } else if (!std::isnan(value)) *to = value;
        else *to = missing() == MissingCells::mean ? feature.mean : 0;
        to += feature.elements();
      }
    }
    made.note = note(static_cast<std::int64_t>(lines_.size()) - rows);
    made.schema = std::make_shared<const TableSchema>(schema_);
    return made;
  }

  // A label with fractions is no class.
  void decide_regression() {
    if (!options_.labelled || options_.known) return;
    const bool of_words = words_.contains(features());
    bool has_fractions = false;
    for (std::size_t row = 0; row < labels_.size(); ++row)
      has_fractions |= kept_[row] && labels_[row] != std::floor(labels_[row]);
    schema_.regression = options_.regression.value_or(!of_words && has_fractions);
    if (schema_.regression && of_words)
      throw InvalidArgumentError("{}: column {} holds words, and --loss asks for numbers; leave --loss out",
                                 files_.front().name(), column_text(schema_.label.place, schema_.label.name));
  }

  Tensor labels(std::int64_t rows) {
    Tensor made = Tensor::zeros(DType::i32, {rows});
    if (!options_.labelled) return made;
    if (schema_.regression) return numbers(rows);
    const auto words = words_.find(features());
    if (words == words_.end()) check_labels();
    std::int32_t* to = made.data<std::int32_t>();
    for (std::size_t row = 0; row < lines_.size(); ++row)
      if (kept_[row])
        *to++ = words != words_.end() ? words->second.of_rows[row] : static_cast<std::int32_t>(labels_[row]);
    if (words != words_.end() || options_.known) return made;
    const std::set<std::int32_t> found(made.data<std::int32_t>(), to);
    if (found.size() < 2 || *found.begin() != 1 || *found.rbegin() != static_cast<std::int32_t>(found.size()))
      return made;
    for (std::int32_t& label : made.span<std::int32_t>()) --label;
    for (const std::int32_t label : found) schema_.label.words.push_back(std::to_string(label));
    notes_.push_back(fmt::format("labels 1 to {} are taken as 0 to {}", found.size(), found.size() - 1));
    return made;
  }

  Tensor numbers(std::int64_t rows) const {
    Tensor made(DType::f32, {rows, 1});
    float* to = made.data<float>();
    for (std::size_t row = 0; row < lines_.size(); ++row)
      if (kept_[row]) *to++ = static_cast<float>(labels_[row]);
    return made;
  }

  void check_labels() {
    for (std::size_t row = 0; row < labels_.size(); ++row) {
      const double label = labels_[row];
      const bool is_label =
          label >= 0 && label <= std::numeric_limits<std::int32_t>::max() && label == std::floor(label);
      if (is_label || !kept_[row]) continue;
      const File& file =
          files_[static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin())];
      throw InvalidArgumentError(
          "{}, line {}, column {}: label {}; labels are whole numbers from 0 on, and --loss mse "
          "finds numbers",
          file.name(), lines_[row], *file.label + 1, label);
    }
  }

  std::string note(std::int64_t dropped) const {
    std::vector<std::string> notes;
    if (options_.labelled && !options_.known)
      notes.push_back((schema_.regression ? "target: column " : "label: column ") +
                      column_text(*files_.front().label, schema_.label.name));
    notes.insert(notes.end(), notes_.begin(), notes_.end());
    for (const auto& [i, words] : words_) {
      if (is_label(i)) continue;
      if (!options_.known)
        notes.push_back(fmt::format("{} words in column {}", column(i).words.size(),
                                    column_text(column(i).place, column(i).name)));
      std::size_t told = 0;
      for (const auto& [word, count] : words.unknown) {
        if (++told > kMostUnknownWords) break;
        notes.push_back(fmt::format("{} of the unknown word {:?}", count, word));
      }
      if (told > kMostUnknownWords)
        notes.push_back(fmt::format("and {} other unknown words", words.unknown.size() - kMostUnknownWords));
    }
    std::int64_t empty = 0;
    for (std::size_t i = 0; i < features(); ++i) empty += cells_[i].empty;
    if (dropped > 0) notes.push_back(fmt::format("left out: {} lines with empty cells", dropped));
    else if (empty > 0) notes.push_back(fmt::format("{} empty cells: {}", empty, name(missing())));
    return fmt::format("{}", fmt::join(notes, ", "));
  }

  const CsvOptions& options_;
  std::vector<File> files_;
  TableSchema schema_;
  std::vector<Cells> cells_;   // of the features, and of the label
  std::vector<float> values_;  // [rows, features]
  std::vector<double> labels_;
  std::vector<std::int64_t> lines_;
  std::vector<std::size_t> ends_;  // of each file, in rows
  std::vector<bool> kept_;
  std::map<std::size_t, Words> words_;  // of the columns of words
  std::vector<std::string> notes_;
  std::int64_t decimal_commas_ = 0;
};

}  // namespace

bool is_table_name(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  return detail::is_same_name(ending, ".csv") || detail::is_same_name(ending, ".tsv");
}

CsvTable read_csv(const std::vector<std::filesystem::path>& paths, const CsvOptions& options) {
  if (paths.empty()) throw InvalidArgumentError("read_csv: there are no files");
  return Reader(paths, options).read();
}

CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  return read_csv(std::vector{path}, options);
}

}  // namespace kolo::models
