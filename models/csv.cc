#include <kolo/models/data.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/models/csv_cells.h>
#include <kolo/models/csv_columns.h>
#include <kolo/models/csv_fields.h>
#include <kolo/models/csv_file.h>
#include <kolo/models/csv_labels.h>
#include <kolo/models/csv_rows.h>
#include <kolo/models/csv_words.h>

namespace kolo::models {
namespace {

using detail::column_text;
using detail::ColumnCells;
using detail::ColumnWords;
using detail::Fields;
using File = detail::CsvFile;

constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

class Reader {
 public:
  Reader(const std::vector<std::filesystem::path>& paths, const CsvOptions& options) : options_(options) {
    for (const auto& path : paths) files_.emplace_back(path);
  }

  CsvTable read() {
    detail::CsvColumns found = detail::find_columns(files_, options_);
    schema_ = std::move(found.schema);
    notes_ = std::move(found.notes);
    column_warnings_ = std::move(found.warnings);
    cells_.resize(columns());
    for (File& file : files_) scan(file);
    if (rows_.lines.empty())
      throw InvalidArgumentError(
          "{}: there are no samples in it{}", files_.front().name(),
          files_.front().has_names ? "; its first line holds the columns' names, and none follows" : "");
    finish_cells();
    read_thousands();
    // Of several labels a cell may have none.
    const bool may_be_split =
        options_.known ? of_labels_.are_split() : labels() == 1 && cells_[features()].bars > 0;
    if (!may_be_split) leave_out_unlabelled();
    if (options_.labelled && !options_.known) of_labels_.choose_kind(std::span(cells_).subspan(features()));
    if (!of_labels_.are_split()) leave_out_unlabelled();
    decide();
    find_words();
    return table();
  }

 private:
  std::size_t features() const { return schema_.features.size(); }
  std::size_t labels() const { return schema_.labels.size(); }
  // Features, and behind them labels.
  std::size_t columns() const { return features() + labels(); }
  bool is_label(std::size_t column) const { return column >= features(); }
  TableColumn& column(std::size_t i) {
    return is_label(i) ? schema_.labels[i - features()] : schema_.features[i];
  }
  std::size_t place_in(const File& file, std::size_t i) const {
    return is_label(i) ? file.labels[i - features()] : file.places[i];
  }

  // The numbers of each row, and what the others are.
  void scan(File& file) {
    Fields fields;
    // Those that are left out tell how the table's numbers are written, too.
    std::map<std::size_t, ColumnCells> others;
    for (std::size_t place = 0; place < file.columns && file.separator() != ','; ++place) others[place];
    for (std::size_t i = 0; i < columns(); ++i)
      if (!is_label(i) || !file.labels.empty()) others.erase(place_in(file, i));
    while (file.next(fields)) {
      file.check_columns(fields);
      note_lines(file);
      for (auto& [place, cells] : others) cells.add(file, place, fields[place]);
      bool is_whole = true, is_labelled = true;
      for (std::size_t i = 0; i < columns(); ++i) {
        if (is_label(i) && file.labels.empty()) continue;
        const std::size_t place = place_in(file, i);
        const std::string_view field = fields[place];
        const std::int64_t empty = cells_[i].empty;
        const auto value = cells_[i].add(file, place, field);
        const bool is_empty = cells_[i].empty != empty;
        is_whole &= !is_empty;
        is_labelled &= !is_empty || !is_label(i);
        if (!value && !name_as_cell_ && file.has_names && !field.empty() && field == column(i).name)
          name_as_cell_ = detail::CellPlace{
              .file = file.name(), .line = file.line(), .column = place, .text = std::string(field)};
        if (!is_label(i)) rows_.values.push_back(value ? static_cast<float>(*value) : kNoNumber);
        else rows_.labels.push_back(value.value_or(-1));
        if (value && i == features()) of_labels_.note_spelling(field, *value);
      }
      if (!is_labelled) unlabelled_.push_back(rows_.lines.size());
      rows_.lines.push_back(file.line());
      rows_.kept.push_back(is_whole || missing() != MissingCells::drop);
    }
    for (const auto& [place, cells] : others) others_show_commas_ |= cells.shows_commas();
    rows_.ends.push_back(rows_.lines.size());
    if (options_.known || &file != &files_.front()) return;
    if (std::string note = detail::separator_note(file.separator(), cells_); !note.empty())
      notes_.push_back(std::move(note));
  }

  // Two quotes too many may make a row of all lines between them.
  void note_lines(const File& file) {
    constexpr std::int64_t kMostLines = 10;
    if (file.last_line() - file.line() < kMostLines || has_long_row_) return;
    has_long_row_ = true;
    column_warnings_.push_back(fmt::format(
        "{}: lines {} to {} are one row, which quotes join; if a quote is there by mistake, double "
        "it, or take it out",
        file.name(), file.line(), file.last_line()));
  }

  MissingCells missing() const { return schema_.missing; }

  // Nothing fills a label.
  void leave_out_unlabelled() {
    if (missing() == MissingCells::refuse) return;
    for (const std::size_t row : unlabelled_) rows_.kept[row] = false;
  }

  // Which cells with commas are numbers, and what points mean.
  void finish_cells() {
    std::vector<ColumnCells*> cells;
    std::vector<TableColumn> known;
    std::vector<std::string> texts;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < columns(); ++i) {
      if ((is_label(i) && !options_.labelled) || !column(i).words.empty()) continue;
      places.push_back(i);
      cells.push_back(&cells_[i]);
      known.push_back(column(i));
      texts.push_back(column_text(column(i).place, column(i).name));
    }
    const bool has_commas = detail::finish_numbers(cells, known,
                                                   {.is_known = options_.known != nullptr,
                                                    .had_decimal_commas = schema_.has_decimal_commas,
                                                    .has_decimal_commas = others_show_commas_});
    if (options_.known) return;
    schema_.has_decimal_commas = has_commas;
    for (const std::size_t i : places) {
      column(i).has_decimal_commas = cells_[i].has_decimal_commas;
      column(i).has_thousands_points = cells_[i].has_thousands_points;
      column(i).has_thousands_commas = cells_[i].has_thousands_commas;
      column(i).has_decimal_points = cells_[i].has_decimal_points;
    }
    for (std::string& note : detail::number_notes(cells, texts)) notes_.push_back(std::move(note));
  }

  // Calls `work` with the number of each row, its file and its fields, a second time.
  template <typename Work>
  void for_each_row(const Work& work) {
    Fields fields;
    std::size_t row = 0;
    for (File& file : files_) {
      file.rewind();
      if (file.has_names) file.next(fields);
      for (; file.next(fields); ++row) work(row, file, fields);
    }
  }

  // Only the last row tells that the points or commas of a column are those of thousands.
  void read_thousands() {
    std::vector<std::size_t> with_marks;
    for (std::size_t i = 0; i < columns(); ++i)
      if (cells_[i].thousands_mark()) with_marks.push_back(i), cells_[i].sum = 0;
    if (with_marks.empty()) return;
    for_each_row([&](std::size_t row, const File& file, const Fields& fields) {
      for (const std::size_t i : with_marks) {
        const auto value =
            detail::number_with_thousands(*cells_[i].thousands_mark(), fields[place_in(file, i)]);
        if (!value) continue;
        cells_[i].sum += *value;
        if (is_label(i)) rows_.labels[row * labels() + (i - features())] = *value;
        else rows_.values[row * features() + i] = static_cast<float>(*value);
      }
    });
  }

  bool is_of_words(std::size_t i) {
    if (options_.known) return !column(i).words.empty();
    return cells_[i].are_words(is_label(i));
  }

  // Which columns are of words, and whether all cells may be what they are.
  void decide() {
    for (std::size_t i = 0; i < columns(); ++i) {
      const ColumnCells& cells = cells_[i];
      if (is_label(i) && !options_.labelled) continue;
      const bool has_words = is_of_words(i), is_split = is_label(i) && of_labels_.are_split();
      if (has_words)
        words_.try_emplace(i, column(i),
                           ColumnWords::Options{.is_known = options_.known != nullptr,
                                                .is_label = is_label(i),
                                                .is_split = is_split,
                                                .trained = options_.known_file});
      if (!options_.known && !is_label(i) && cells.numbers == 0 && cells.words == 0)
        throw InvalidArgumentError("{}: column {} is empty; --ignore {} leaves it out", files_.front().name(),
                                   column(i).place + 1, column(i).place + 1);
      if (cells.empty > 0 && !is_split && missing() == MissingCells::refuse)
        throw InvalidArgumentError(
            "{}, line {}, column {}: an empty cell; {}", cells.first_empty.file, cells.first_empty.line,
            cells.first_empty.column + 1,
            options_.known ? "a training with --missing mean, zero or drop takes it"
            : is_label(i) ? "a sample needs its label, and --missing mean, zero or drop leaves such lines out"
            : has_words   ? "--missing mean or zero takes it as none of the column's words, and --missing "
                            "drop leaves such lines out"
                          : "--missing mean or zero fills it, and --missing drop leaves such lines out");
      if (!has_words && cells.words > 0) detail::throw_no_number(cells.first_word, options_.known != nullptr);
      if (options_.known || has_words || is_label(i)) continue;
      column(i).mean = static_cast<float>(cells.sum / static_cast<double>(cells.numbers));
    }
  }

  void find_words() {
    if (words_.empty()) return;
    for_each_row([&](std::size_t row, const File& file, const Fields& fields) {
      for (auto& [i, words] : words_)
        if (rows_.kept[row]) words.take(file, place_in(file, i), fields);
        else words.skip();
    });
    for (auto& [i, words] : words_) words.finish();
    if (of_labels_.are_split() && options_.labelled && schema_.outputs() < 2)
      throw InvalidArgumentError("{}: one label, {}; there must be at least two", files_.front().name(),
                                 fmt::join(schema_.output_names(), ""));
  }

  CsvTable table() {
    const std::int64_t rows = std::count(rows_.kept.begin(), rows_.kept.end(), true);
    if (rows == 0)
      throw InvalidArgumentError("{}: there are no samples without empty cells in it", files_.front().name());
    const auto label_words = words_.find(features());
    CsvTable made{.x = Tensor::zeros(DType::f32, {rows, schema_.elements()}),
                  .y = of_labels_.of_rows(rows, label_words == words_.end() ? nullptr : &label_words->second),
                  .note = {}};
    float* to = made.x.data<float>();
    for (std::size_t row = 0; row < rows_.lines.size(); ++row) {
      while (row == rows_.ends[made.ends.size()]) made.ends.push_back(made.lines.size());
      if (!rows_.kept[row]) continue;
      made.lines.push_back(rows_.lines[row]);
      for (std::size_t i = 0; i < features(); ++i) {
        const TableColumn& feature = schema_.features[i];
        const float value = rows_.values[row * features() + i];
        if (const auto words = words_.find(i); words != words_.end()) {
          for (const std::int32_t number : words->second.of_row(row)) to[number] = 1;
        } else if (!std::isnan(value)) *to = value;
        else *to = missing() == MissingCells::mean ? feature.mean : 0;
        to += feature.elements();
      }
    }
    made.ends.resize(files_.size(), made.lines.size());
    made.note = note(static_cast<std::int64_t>(rows_.lines.size()) - rows);
    made.warnings = warnings();
    made.schema = std::make_shared<const TableSchema>(schema_);
    return made;
  }

  std::vector<std::string> warnings() {
    std::vector<std::string> warnings = options_.known ? warnings_of_places() : std::vector<std::string>{};
    warnings.insert(warnings.end(), column_warnings_.begin(), column_warnings_.end());
    if (options_.known) {
      add_empty_columns(warnings);
      for (const auto& [i, words] : words_)
        if (std::string text = words.warning_of_unknown(); !text.empty()) warnings.push_back(std::move(text));
      return warnings;
    }
    if (std::string text = of_labels_.warning_of_spellings(); !text.empty() && !words_.contains(features()))
      warnings.push_back(std::move(text));
    // Above a column of numbers a word is a name.
    if (name_as_cell_ && words_.size() == columns())
      warnings.push_back(
          fmt::format("the first line is taken for the columns' names, although {:?} stands in line {} of "
                      "that column, too; "
                      "a first line with names keeps all samples where it is one",
                      name_as_cell_->text, name_as_cell_->line));
    const std::int64_t bars = cells_.back().bars, lines = std::ssize(rows_.lines);
    if (of_labels_.are_split() && 10 * bars < lines)
      warnings.push_back(
          fmt::format("the label, column {}, has | in {} of {} cells, so that a sample has several labels; "
                      "--loss softmax "
                      "takes each cell for a class",
                      column_text(schema_.labels.front().place, schema_.labels.front().name), bars, lines));
    for (const auto& [i, words] : words_)
      for (std::string& warning : words.warnings(cells_[i].first_word))
        warnings.push_back(std::move(warning));
    for (std::size_t i = 0; i < columns(); ++i) {
      if (std::string text = cells_[i].rounding_text(); !text.empty() && !words_.contains(i))
        warnings.push_back(fmt::format("column {}: {}", column_text(column(i).place, column(i).name), text));
      // Of one column alone there is nothing else to learn from.
      if (!cells_[i].numbers_rows() || words_.contains(i) || (!is_label(i) && features() == 1)) continue;
      warnings.push_back(detail::warning_of_row_numbers(column(i), is_label(i)));
    }
    return warnings;
  }

  // Of a later table, in which a column is there and holds nothing.
  void add_empty_columns(std::vector<std::string>& warnings) const {
    constexpr std::int64_t kFewRows = 10;
    const std::int64_t rows = std::ssize(rows_.lines);
    for (std::size_t i = 0; i < features() && rows >= kFewRows; ++i) {
      const TableColumn& feature = schema_.features[i];
      if (cells_[i].empty != rows) continue;
      warnings.push_back(fmt::format("{}: column {} is empty in all {} rows: {}", files_.front().name(),
                                     column_text(feature.place, feature.name), rows,
                                     !feature.words.empty()            ? "none of its words is there"
                                     : missing() == MissingCells::mean ? "the training's mean stands there"
                                                                       : "0 stands there"));
    }
  }

  // Of files without names, where the training's table had some.
  std::vector<std::string> warnings_of_places() const {
    std::vector<std::string> warnings, columns;
    for (const TableColumn& feature : schema_.features)
      columns.push_back(column_text(feature.place, feature.name));
    constexpr std::size_t kMostNamed = 8;
    if (columns.size() > kMostNamed) columns.resize(kMostNamed), columns.emplace_back("…");
    for (const File& file : files_)
      if (schema_.is_named && !file.has_names)
        warnings.push_back(
            fmt::format("{}: its first line has no names, so its columns are taken by their places in the "
                        "training's table: {}; in another order every answer is wrong, and a first line with "
                        "the names finds them in any order",
                        file.name(), fmt::join(columns, ", ")));
    return warnings;
  }

  std::string note(std::int64_t dropped) const {
    std::vector<std::string> notes;
    if (options_.labelled && !options_.known) notes.push_back(of_labels_.columns_text());
    notes.insert(notes.end(), notes_.begin(), notes_.end());
    notes.insert(notes.end(), of_labels_.notes().begin(), of_labels_.notes().end());
    for (const auto& [i, words] : words_)
      for (std::string& one : words.notes(files_.size() > 1)) notes.push_back(std::move(one));
    std::int64_t of_numbers = 0, of_words = 0;
    const detail::CellPlace *number = nullptr, *word = nullptr;  // the first ones
    for (std::size_t i = 0; i < features(); ++i) {
      (words_.contains(i) ? of_words : of_numbers) += cells_[i].empty;
      const detail::CellPlace*& first = words_.contains(i) ? word : number;
      if (cells_[i].empty > 0 && first == nullptr) first = &cells_[i].first_empty;
    }
    const auto where = [&](const detail::CellPlace& first) {
      return "such as " + detail::place_text(first, files_.size() > 1);
    };
    const auto of_label = std::find_if(cells_.begin() + static_cast<std::ptrdiff_t>(features()), cells_.end(),
                                       [](const ColumnCells& cells) { return cells.empty > 0; });
    if (dropped > 0 && missing() != MissingCells::drop)
      notes.push_back(fmt::format("left out: {} without a label ({})", count_of(dropped, "line"),
                                  where(of_label->first_empty)));
    if (dropped > 0 && missing() == MissingCells::drop) {
      notes.push_back(fmt::format("left out: {} with empty cells ({})", count_of(dropped, "line"),
                                  where(number != nullptr ? *number
                                        : word != nullptr ? *word
                                                          : of_label->first_empty)));
      return fmt::format("{}", fmt::join(notes, ", "));
    }
    if (of_numbers > 0)
      notes.push_back(
          fmt::format("{}: {} ({})", count_of(of_numbers, "empty cell"), name(missing()), where(*number)));
    if (of_words > 0)
      notes.push_back(fmt::format("{} among words: none of the column's words ({})",
                                  count_of(of_words, "empty cell"), where(*word)));
    return fmt::format("{}", fmt::join(notes, ", "));
  }

  const CsvOptions& options_;
  std::vector<File> files_;
  TableSchema schema_;
  std::vector<ColumnCells> cells_;  // of the features, and of the label
  detail::CsvRows rows_;
  std::vector<std::size_t> unlabelled_;  // rows
  detail::CsvLabels of_labels_{options_, files_, rows_, schema_};
  std::map<std::size_t, ColumnWords> words_;  // of the columns of words
  std::vector<std::string> notes_, column_warnings_;
  bool others_show_commas_ = false, has_long_row_ = false;
  std::optional<detail::CellPlace> name_as_cell_;  // a cell that is the name of its column
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
