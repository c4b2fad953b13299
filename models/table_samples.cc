#include <kolo/models/table_samples.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <system_error>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/models/batches.h>
#include <kolo/models/data.h>
#include <kolo/models/folder_contents.h>
#include <kolo/models/own_files.h>
#include <kolo/models/paths.h>
#include <kolo/models/samples_internal.h>
#include <kolo/models/seen_samples.h>
#include <kolo/models/shared_samples.h>
#include <kolo/models/unknown_labels.h>

namespace kolo::models::detail {
namespace {

namespace fs = std::filesystem;
using Found = std::shared_ptr<const SampleSet>;

// classes: of the whole table, or of the training; 0: those of the labels.
Found samples_of(std::string name, CsvTable table, std::int64_t classes) {
  const TableSchema& schema = *table.schema;
  return array_samples_of({.name = std::move(name),
                           .shape = {},
                           .classes = schema.outputs() > 0 ? schema.outputs() : classes,
                           .label_kind = schema.label_kind,
                           .note = std::move(table.note),
                           .class_names = schema.output_names(),
                           .table = std::move(table.schema),
                           .warnings = std::move(table.warnings)},
                          std::move(table.x), std::move(table.y));
}

CsvOptions options_of(const DataRequest& request) {
  CsvOptions options = request.table;
  options.label_kind = request.label_kind;
  return options;
}

CsvTable rows_of(const CsvTable& table, const std::vector<std::int64_t>& rows) {
  const std::int64_t elements = table.x.shape().dim(1);
  std::vector<std::int64_t> of_labels = table.y.shape().dims();
  of_labels.front() = std::ssize(rows);
  CsvTable part{.x = Tensor(DType::f32, {std::ssize(rows), elements}),
                .y = Tensor(table.y.dtype(), Shape(std::move(of_labels))),
                .note = table.note,
                .schema = table.schema,
                .warnings = table.warnings};
  float* to = part.x.data<float>();
  // f32 or i32: four bytes each.
  static_assert(sizeof(float) == sizeof(std::int32_t));
  const std::int64_t label_bytes = table.y.elements() / table.y.shape().dim(0) * std::int64_t{sizeof(float)};
  std::byte* label = part.y.raw();
  for (const std::int64_t row : rows) {
    to = std::copy_n(table.x.data<float>() + row * elements, elements, to);
    label = std::copy_n(table.y.raw() + row * label_bytes, label_bytes, label);
  }
  return part;
}

// A row by its numbers and its label, which stay in memory as long as this.
SampleContents row_contents(const CsvTable& table) {
  SampleContents contents =
      contents_of_rows(table.y.shape().dim(0), [x = table.x, y = table.y](std::int64_t row) {
        const auto bytes_of = [row](const Tensor& rows) {
          const std::int64_t bytes = rows.bytes() / rows.shape().dim(0);
          return std::span(rows.raw() + row * bytes, static_cast<std::size_t>(bytes));
        };
        return digest_of_bytes(bytes_of(y), digest_of_bytes(bytes_of(x)));
      });
  contents.numbers = {table.x};
  if (table.y.dtype() == DType::f32) contents.numbers.push_back(table.y);
  return contents;
}

// Of labels that are numbers.
std::int64_t classes_of(const CsvTable& table, const DataRequest& request) {
  if (table.schema->outputs() > 0) return table.schema->outputs();
  if (request.classes > 0) return request.classes;
  const auto labels = table.y.span<std::int32_t>();
  return *std::max_element(labels.begin(), labels.end()) + std::int64_t{1};
}

// Of classes that are numbers; those that are words the reader has checked.
void check_numbers(const CsvTable& table, std::int64_t classes, const fs::path& path,
                   const std::string& trained) {
  const TableSchema& schema = *table.schema;
  if (schema.label_kind == LabelKind::one_class && schema.outputs() == 0)
    check_known_labels(table.y, classes, path.string(), trained);
}

// The name has such a word of its own: bin_train.csv, and not strain.csv.
bool names_a_part(const std::string& name) {
  std::string word;
  for (const char c : name + ".") {
    if (lower_case(c) >= 'a' && lower_case(c) <= 'z') {
      word += lower_case(c);
      continue;
    }
    for (const char* const part : {"train", "test", "val", "valid", "validation"})
      if (word == part) return true;
    word.clear();
  }
  return false;
}

// Of tables that are joined.
std::string warning_of_parts(const std::vector<fs::path>& tables) {
  for (const fs::path& table : tables)
    if (const std::string name = table.filename().string(); tables.size() > 1 && names_a_part(name))
      return fmt::format(
          "{} tables are read as one, of which a tenth is for testing, although one is called {}: train.csv "
          "and test.csv (or .tsv) are read apart",
          tables.size(), name);
  return "";
}

// Without a test file of its own: a tenth of the rows is for testing.
DataSplits shared_out(const std::string& name, const std::vector<fs::path>& paths,
                      const std::string& left_out, const DataRequest& request, Wanted wanted) {
  CsvTable table = read_csv(paths, options_of(request));
  if (wanted.train) check_labels(table.y, paths.front(), table.note, table.schema->output_names());
  add_note(table.note, left_out);
  if (std::string parts = warning_of_parts(paths); !parts.empty()) table.warnings.push_back(std::move(parts));
  const std::int64_t count = table.y.shape().dim(0), classes = classes_of(table, request);
  check_numbers(table, classes, paths.front(), "");
  std::vector<std::uint64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  const bool are_classes = table.y.dtype() == DType::i32;
  const std::vector<std::int64_t> testing = drawn_for_testing(
      rows, request.seed, are_classes ? table.y.span<std::int32_t>() : std::span<std::int32_t>());
  const SampleContents contents = row_contents(table);
  if (!is_shared_out(request, wanted, testing, contents, table.warnings)) {
    add_note(table.note,
             count == 1 ? "its only row for testing" : fmt::format("all {} rows for testing", count));
    return {.train = nullptr, .test = samples_of(name, std::move(table), classes)};
  }
  if (testing.empty())
    return {.train = wanted.train ? samples_of(name, std::move(table), classes) : nullptr,
            .test = nullptr,
            .digests = digests_later({}, contents)};
  add_note(table.note,
           fmt::format("{} of {} rows for testing by the seed {}", testing.size(), count, request.seed));
  add_note(table.note, note_of_shared(testing, contents));
  DataSplits splits{.train = nullptr, .test = nullptr, .digests = digests_later(testing, contents)};
  for (const std::int64_t row : testing) {
    const auto file = std::upper_bound(table.ends.begin(), table.ends.end(), static_cast<std::size_t>(row)) -
                      table.ends.begin();
    splits.drawn.push_back(fmt::format("{}:{}", paths[static_cast<std::size_t>(file)].filename().string(),
                                       table.lines[static_cast<std::size_t>(row)]));
  }
  if (wanted.train) splits.train = samples_of(name, rows_of(table, others_than(testing, count)), classes);
  if (wanted.test) splits.test = samples_of(name, rows_of(table, testing), classes);
  return splits;
}

// NAME.csv or .tsv, of the first of the names that is there; else that of the first name, which is not there.
fs::path table_of(const fs::path& folder, const std::vector<const char*>& names) {
  for (const char* const name : names)
    for (const char* const ending : {".csv", ".tsv"})
      if (fs::path path = folder / fmt::format("{}{}", name, ending); is_file(path)) return path;
  return folder / fmt::format("{}.csv", names.front());
}

// train.csv and test.csv, of which the second is read by the columns of the first.
DataSplits pair_of_tables(const fs::path& folder, const DataRequest& request, Wanted wanted) {
  const fs::path train = table_of(folder, {"train"}),
                 test = table_of(folder, {"test", "val", "valid", "validation"});
  DataSplits splits;
  CsvOptions options = options_of(request);
  std::int64_t classes = request.classes;
  const bool has_test = wanted.test && is_file(test);
  LearntPart learnt(request);
  if (wanted.train || (has_test && !options.known && is_file(train))) {
    CsvTable table = read_csv(train, options);
    check_labels(table.y, train, table.note, table.schema->output_names());
    add_note(table.note, left_out_beside(folder, {train.filename().string(), test.filename().string()}));
    options.known = table.schema;
    options.known_file = train.filename().string();
    classes = classes_of(table, request);
    check_numbers(table, classes, train, "");
    if (wanted.train) learnt.learn(row_contents(table), options.known_file);
    splits.digests = learnt.digests();
    if (wanted.train) splits.train = samples_of(train.filename().string(), std::move(table), classes);
  }
  if (has_test) {
    CsvTable table = read_csv(test, options);
    check_numbers(table, classes, test, options.known_file);
    for (std::string& warning : learnt.warnings_of(row_contents(table), test.filename().string()))
      table.warnings.push_back(std::move(warning));
    splits.test = samples_of(test.filename().string(), std::move(table), classes);
  }
  return splits;
}

}  // namespace

std::vector<fs::path> tables_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (const fs::path& path = entry->path();
        is_table_name(path) && is_file(path) && !path.filename().string().starts_with('.'))
      found.push_back(path);
  std::sort(found.begin(), found.end());
  std::vector<fs::path> others;  // of which a model may learn
  if (found.size() > 1)
    std::remove_copy_if(found.begin(), found.end(), std::back_inserter(others), are_predictions);
  return others.empty() ? found : others;
}

bool is_table_folder(const fs::path& folder) { return !tables_in(folder).empty(); }

DataSplits table_samples(const fs::path& path, const DataRequest& request, Wanted wanted) {
  const std::string name = last_name(path);
  if (!is_folder(path)) return shared_out(name, {path}, "", request, wanted);
  if (is_file(table_of(path, {"train"})) || is_file(table_of(path, {"test"})))
    return pair_of_tables(path, request, wanted);
  const std::vector<fs::path> tables = tables_in(path);
  std::vector<std::string> taken;
  for (const fs::path& table : tables) taken.push_back(table.filename().string());
  return shared_out(name, tables, left_out_beside(path, taken), request, wanted);
}

void check_labels(const Tensor& y, const fs::path& path, const std::string& note,
                  const std::vector<std::string>& names) {
  if (y.dtype() == DType::f32) return;
  const auto labels = y.span<std::int32_t>();
  if (labels.empty() || std::any_of(labels.begin(), labels.end(), [&](auto one) { return one != labels[0]; }))
    return;
  throw InvalidArgumentError("{}: one class: all {} labels are {}{}; there must be at least two classes",
                             path.string(), labels.size(),
                             names.empty()
                                 ? std::to_string(labels[0])
                                 : fmt::format("{:?}", names.at(static_cast<std::size_t>(labels[0]))),
                             note.empty() ? "" : ", " + note);
}

}  // namespace kolo::models::detail
