// Summaries: values of a step as TensorBoard shows them, for a SummaryWriter or SummarySaverHook to write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/graph/scope.h>
#include <kolo/core/summary/summary_writer.h>

namespace kolo {

/// The collection of what summary::merge_all merges.
inline constexpr char kSummaries[] = "summaries";

/// TensorFlow 1's tf.summary. Each op gives a string scalar, a serialised tensorflow.Summary, and computes
/// nothing unless that is fetched. `name` is the op's, and inside name scopes the tag is its whole name; what
/// a name may not have becomes _, with a log line `Summary name <n> is illegal; using <m> instead.`
namespace summary {

/// Where a summary goes, and its tag.
struct Options {
  std::vector<std::string> collections = {kSummaries};  // that the op is added to
  std::string family = {};                              // groups tags: "<family>/<name of the op>"
};

/// value: one number of any type. Throws InvalidArgumentError for another shape, where it is not known
/// before, when it runs.
Output scalar(const Scope& s, const std::string& name, Output value, const Options& options = {});
/// values: numbers of any shape. When it runs, throws InvalidArgumentError `Nan in summary histogram for:
/// <name>`, `Infinity in summary histogram for: <name>`. The buckets are those of histogram_summary().
Output histogram(const Scope& s, const std::string& name, Output values, const Options& options = {});
/// images: [images, height, width, 1|3|4] of u8 or floating numbers, scaled as image_summary() does; the
/// first `max_outputs` of them. Throws InvalidArgumentError `Tensor must be 4-D with last dim 1, 3, or 4, not
/// <s>`, where the shape is not known before, when it runs.
Output image(const Scope& s, const std::string& name, Output images, std::int64_t max_outputs = 3,
             const Options& options = {});
/// text: strings (Markdown); of rank 1 or 2 a table. Throws InvalidArgumentError `Expected tensor <n> to have
/// dtype string, got <dtype>`.
Output text(const Scope& s, const std::string& name, Output text, const Options& options = {});

/// All values of `summaries` as one summary. Throws InvalidArgumentError if there are none, and, when it
/// runs, `Duplicate tag <tag> found in summary inputs`.
Output merge(const Scope& s, const Outputs& summaries);
/// merge() of the collection as it is now; empty where nothing is in it.
Output merge_all(const Scope& s, const std::string& collection = kSummaries);

}  // namespace summary
}  // namespace kolo
