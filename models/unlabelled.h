// Samples without labels from the files that a user names: what a trained model predicts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kolo/models/samples.h>

namespace kolo::models {

/// Samples to predict from, each with the name that it has in the output.
struct UnlabelledSamples {
  std::shared_ptr<const SampleSet> samples;  // labels are 0
  std::vector<std::string> names;            // "cat.jpg"; "x.npy[3]"; of a table the line: "table.csv:17"
  std::string left_out;                      // of folders and tables: "left out: 180 .webp"
  std::vector<std::string> notes = {};       // of tables: unknown words, empty cells, lines left out
};

/// In the order of `paths`; a folder's pictures are sorted by name, those in folders below behind them.
/// path: a picture (.png .jpg .jpeg), a folder of pictures, a table (.csv; a column more than `sample` has is
/// the label, found as read_csv finds it, and is not looked at) or an array (.npy: [N, sample…], or one
/// sample alone; as load_data takes it). table: what the columns mean; without it they are numbers. sample:
/// [C,H,W], to which pictures are brought, or [D]. Pictures are opened when they are read. Throws
/// NotFoundError for a path that is not there, InvalidArgumentError for a file of another kind, a folder
/// without pictures, samples of another shape and no paths at all, and what the readers throw.
UnlabelledSamples unlabelled_samples(const std::vector<std::string>& paths, const Shape& sample,
                                     std::shared_ptr<const TableSchema> table = nullptr);

}  // namespace kolo::models
