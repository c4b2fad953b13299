// The class of each sample of an array, by a network that kolo-train has trained:
// predict_arrays FOLDER SAMPLES.npy
#include <algorithm>
#include <cstdio>

#include <kolo/kolo.h>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "predict_arrays: give a folder and a file: predict_arrays ck x.npy\n");
    return 2;
  }
  const auto predictor = kolo::models::Predictor::load(argv[1]);
  const kolo::Tensor shares = predictor(kolo::models::read_npy(argv[2]));  // [N, classes]
  const std::int64_t classes = predictor.classes();
  for (std::int64_t i = 0; i < shares.elements(); i += classes) {
    const float* const row = shares.data<float>() + i;
    const auto best = std::max_element(row, row + classes) - row;
    std::printf("%s %.4f\n", predictor.class_names()[static_cast<std::size_t>(best)].c_str(), row[best]);
  }
}
