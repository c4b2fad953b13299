// Summaries, and the files that TensorBoard reads.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <kolo/core/graph/graph.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

// Values as TensorBoard shows them, outside of a graph: what a SummaryWriter adds. In a graph the ops of
// core/ops/summaries.h make the same.

/// A summary: a serialised protobuf message, tensorflow.Summary, of any number of values with a tag each.
using SummaryBytes = std::string;

/// A number, as a point of the curve `tag`.
SummaryBytes scalar_summary(const std::string& tag, double value);

/// How the elements of `values`, numbers of any shape, are spread: counted in buckets whose ends grow by a
/// tenth from 1e-12 on. Throws InvalidArgumentError `Nan in summary histogram for: <tag>`, `Infinity in
/// summary histogram for: <tag>`.
SummaryBytes histogram_summary(const std::string& tag, const Tensor& values);

/// RGBA of pixels that are not finite.
using BadColor = std::array<std::uint8_t, 4>;
inline constexpr BadColor kRed = {255, 0, 0, 255};

/// The first `max_images` of `images` [images, height, width, channels], channels 1 (gray), 3 (RGB) or 4
/// (RGBA), as PNG under the tags `<tag>/image/0`, …, or `<tag>/image` where max_images is 1. u8: as they are.
/// f32, f64, f16, bf16: each image is scaled by itself, so that its largest value is 255; one with values
/// below zero so that 0 is 128 and the largest amount 127. Throws InvalidArgumentError `Tensor must be 4-D
/// with last dim 1, 3, or 4, not <shape>`, for other types, and for max_images below 1.
SummaryBytes image_summary(const std::string& tag, const Tensor& images, int max_images = 3,
                           const BadColor& bad_color = kRed);

/// A tensor of strings (Markdown), shown as text, one of rank 1 or 2 as a table. Throws InvalidArgumentError
/// `Expected tensor <tag> to have dtype string, got <dtype>`.
SummaryBytes text_summary(const std::string& tag, const Tensor& text);
SummaryBytes text_summary(const std::string& tag, const std::string& text);

/// Any tensor, with what a plug-in of TensorBoard wants to know: a serialised tensorflow.SummaryMetadata.
/// Throws InvalidArgumentError if that is none.
SummaryBytes tensor_summary(const std::string& tag, const Tensor& value, std::string_view metadata);

/// All values of all. Throws InvalidArgumentError `Duplicate tag <tag> found in summary inputs`, and where
/// one is no summary.
SummaryBytes merge_summaries(std::span<const SummaryBytes> summaries);

// Writes what TensorBoard shows of a training: event files.

/// When a SummaryWriter writes, and the end of its file's name.
struct SummaryWriterOptions {
  std::size_t max_queue = 10;  // events that wait in memory; one more writes them
  double flush_secs = 120;     // an event that comes so long after the last flush writes them, too
  std::string filename_suffix = {};
};

enum class SessionStatus { start = 1, stop = 2, checkpoint = 3 };

/// One folder's writer; TensorFlow 1's FileWriter. Any thread. The file, `events.out.tfevents.<secs>.<host>`,
/// is made with the first event, so that who adds none leaves none.
///
/// Calls that write throw ResourceExhaustedError for a full disk, FailedPreconditionError for a folder or
/// file that cannot be written; the events wait then, and the next flush tries again. After close() adding
/// does nothing but warn, until reopen().
class SummaryWriter {
 public:
  /// logdir: made where it is missing. Throws InvalidArgumentError for flush_secs below 0.
  explicit SummaryWriter(std::string logdir, SummaryWriterOptions options = {});
  /// With add_graph(graph).
  SummaryWriter(std::string logdir, const Graph& graph, SummaryWriterOptions options = {});
  /// close(), but an error is logged instead of thrown.
  ~SummaryWriter();
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  const std::string& logdir() const { return logdir_; }
  /// Of the file that is written now; "" before the first event and after close().
  std::string path() const;

  /// summary: serialised; as a tensor: a string scalar, as the ops of core/ops/summaries.h give it. Throws
  /// InvalidArgumentError for what is none.
  void add_summary(const SummaryBytes& summary, std::optional<std::int64_t> step = {});
  void add_summary(const Tensor& summary, std::optional<std::int64_t> step = {});
  /// For the picture of the graph: names, ops, devices and shapes, small constants too.
  void add_graph(const Graph& graph, std::optional<std::int64_t> step = {});
  /// Where a training began, ended, or was saved: TensorBoard drops what a run that was begun anew from an
  /// earlier step wrote beyond it.
  void add_session_log(SessionStatus status, std::optional<std::int64_t> step = {},
                       const std::string& checkpoint_path = {});
  /// run_metadata: a serialised tensorflow.RunMetadata. Throws InvalidArgumentError `The provided tag was
  /// already used for this event type`.
  void add_run_metadata(std::string_view run_metadata, const std::string& tag,
                        std::optional<std::int64_t> step = {});
  /// Any tensorflow.Event, serialised. Throws InvalidArgumentError for what is none.
  void add_event(std::string_view event);

  /// All events are in the file.
  void flush();
  /// flush(), and the file is complete. Again: nothing happens.
  void close();
  /// After close(): events go to another file of the folder. Before: nothing happens.
  void reopen();

 private:
  class Impl;
  std::string logdir_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kolo
