// Writes what TensorBoard shows of a training: event files.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <kolo/core/graph/graph.h>
#include <kolo/core/summary/summary_values.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

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
