// The callback that writes event files.
#include <fmt/format.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/summary/summary_writer.h>
#include <kolo/models/keras/callbacks.h>
#include <kolo/models/keras/model.h>

namespace kolo::keras {

TensorBoardOptions::UpdateFreq::UpdateFreq(const std::string& text) : samples(text == "batch" ? 1 : 0) {
  if (text != "batch" && text != "epoch")
    throw InvalidArgumentError("update_freq is \"{}\"; it is \"epoch\", \"batch\" or a number of samples",
                               text);
}

TensorBoard::TensorBoard(std::string log_dir, TensorBoardOptions options)
    : log_dir_(std::move(log_dir)), options_(options) {}

void TensorBoard::on_train_begin(Logs&) {
  samples_ = written_ = 0;
  if (world_group().rank() != 0) return;
  writer_ = std::make_shared<SummaryWriter>(log_dir_);
  if (options_.write_graph) writer_->add_graph(model().inputs()[0].output().node->graph());
}

void TensorBoard::write(const Logs& logs, std::int64_t step) {
  for (const auto& [name, value] : logs.entries())
    if (name != "batch" && name != "size") writer_->add_summary(scalar_summary(name, value), step);
}

void TensorBoard::on_batch_end(std::int64_t, Logs& logs) {
  if (!writer_ || options_.update_freq.samples == 0) return;
  samples_ += static_cast<std::int64_t>(logs.find("size").value_or(0));
  if (samples_ - written_ < options_.update_freq.samples) return;
  written_ = samples_;
  write(logs, samples_);
}

void TensorBoard::on_epoch_end(std::int64_t epoch, Logs& logs) {
  if (!writer_) return;
  write(logs, options_.update_freq.samples == 0 ? epoch : samples_);
  if (options_.histogram_freq > 0 && epoch % options_.histogram_freq == 0) {
    const std::vector<Tensor> weights = model().get_weights();
    const std::vector<std::string> names = model().weight_names();
    for (std::size_t i = 0; i < weights.size(); ++i)
      writer_->add_summary(histogram_summary(names[i], weights[i]), epoch);
  }
  writer_->flush();
}

void TensorBoard::on_train_end(Logs&) { writer_.reset(); }

}  // namespace kolo::keras
