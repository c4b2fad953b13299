// Trains gpt on the characters of a text, over all ranks, and writes a text of its own:
// mpirun -n 2 write_text FILE [STEPS [WEIGHTS]]
//
// The last tenth of the text is kept to see how well the model does on what it has not learnt from. The same
// command with more steps goes on from the newest checkpoint in text_logs. WEIGHTS: what it starts from
// there, such as a folder of checkpoints of `kolo-train --model gpt --data FILE`; with 0 steps it only
// writes.
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <kolo/kolo.h>

using namespace kolo;

namespace {

constexpr std::int64_t kLength = 128;
constexpr int kWritten = 300;  // characters

double mean_loss(Session& session, Output loss, const std::vector<Output>& inputs,
                 const models::TextPieces& pieces) {
  constexpr int kBatches = 4;
  double sum = 0;
  for (int i = 0; i < kBatches; ++i) {
    const models::TextBatch batch = pieces.at(i);
    sum += session.run(loss, {{inputs[0], batch.tokens}, {inputs[1], batch.next}}).value<float>();
  }
  return sum / kBatches;
}

// One character after the other, each drawn from what the model expects.
std::string write(Session& session, Output logits, Output tokens, const models::Text& text) {
  std::vector<std::int32_t> written = text.encode("\n");
  std::mt19937_64 random(1);
  while (written.size() < kWritten) {
    Tensor window =
        Tensor::zeros(DType::i32, {1, kLength});  // what stands behind the last one does not matter
    const std::size_t seen = std::min<std::size_t>(written.size(), kLength);
    std::copy(written.end() - static_cast<std::ptrdiff_t>(seen), written.end(), window.data<std::int32_t>());
    const Tensor found = session.run(logits, {{tokens, window}});
    const auto scores =
        found.span<float>().subspan((seen - 1) * text.alphabet().size(), text.alphabet().size());
    double sum = 0;
    for (const float score : scores) sum += std::exp(score);
    double left = static_cast<double>(random() >> 11) * 0x1p-53 * sum;
    std::int32_t next = 0;
    while ((left -= std::exp(scores[static_cast<std::size_t>(next)])) > 0 &&
           next + 1 < static_cast<std::int32_t>(scores.size()))
      ++next;
    written.push_back(next);
  }
  std::string characters;
  for (const std::int32_t token : written) characters += text.alphabet()[static_cast<std::size_t>(token)];
  return characters;
}

}  // namespace

int main(int argc, char** argv) {
  init(&argc, &argv);
  if (argc < 2) {
    std::fprintf(stderr, "write_text: give a text: write_text FILE [STEPS [WEIGHTS]]\n");
    return 2;
  }
  const models::Text text = models::Text::read(argv[1]);
  const std::int64_t steps = argc > 2 ? std::stoll(argv[2]) : 2000;
  const models::TextPieces pieces(text, {.length = kLength, .rank = rank(), .ranks = size(), .end = 0.9});
  const models::TextPieces kept(text, {.length = kLength, .begin = 0.9});

  Graph graph;
  graph.set_seed(1);
  Scope s(graph);
  auto tokens = placeholder(s, DType::i32, {-1, kLength}), next = placeholder(s, DType::i32, {-1});
  auto logits = models::gpt(s, tokens, {.vocabulary = static_cast<std::int64_t>(text.alphabet().size())});
  auto loss = softmax_cross_entropy(s, logits, next);
  DistributedOptimizer opt(std::make_unique<AdamOptimizer>(0.001f));
  auto train_op = opt.minimize(s, loss);

  MonitoredTrainingSession sess(graph, {.checkpoint_dir = "text_logs",
                                        .hooks = {std::make_shared<StopAtStepHook>(steps)},
                                        .initial_weights = {.path = argc > 3 ? argv[3] : ""}});
  while (sess.global_step() < steps && !sess.should_stop()) {
    const models::TextBatch batch = pieces.at(sess.global_step());
    sess.run(train_op, {{tokens, batch.tokens}, {next, batch.next}});
    if (rank() == 0 && sess.global_step() % 100 == 0)
      std::printf("step %lld: %.3f nats a character\n", static_cast<long long>(sess.global_step()),
                  mean_loss(sess.session(), loss, {tokens, next}, kept));
  }
  if (rank() == 0)
    std::printf("step %lld: %.3f nats a character\n%s\n", static_cast<long long>(sess.global_step()),
                mean_loss(sess.session(), loss, {tokens, next}, kept),
                write(sess.session(), logits, tokens, text).c_str());
  sess.close();
}
