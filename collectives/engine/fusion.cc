#include <kolo/collectives/engine/fusion.h>

#include <algorithm>

namespace kolo::detail {
namespace {

struct Run {
  const Request* request;
  DType dtype;
  int contributors;
  std::int64_t bytes;
  std::size_t place;  // in the list of runs
};

bool fits(const Run& run, const AgreedReduction& reduction, DType dtype) {
  const Request& request = *reduction.request;
  return run.dtype == dtype && run.contributors == reduction.contributors &&
         run.request->reduction == request.reduction &&
         run.request->average_over_all == request.average_over_all && run.request->device == request.device;
}

}  // namespace

std::vector<std::vector<Piece>> fuse(const std::vector<AgreedReduction>& reductions,
                                     std::int64_t fusion_bytes) {
  std::vector<std::vector<Piece>> runs;
  std::vector<Run> open;
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    const Request& request = *reductions[i].request;
    for (std::size_t t = 0; t < request.tensors.size(); ++t) {
      const Piece piece{static_cast<int>(i), static_cast<int>(t), request.tensors[t].bytes()};
      if (piece.bytes == 0) continue;
      const DType dtype = request.tensors[t].dtype;
      const auto run = std::find_if(open.begin(), open.end(),
                                    [&](const Run& known) { return fits(known, reductions[i], dtype); });
      if (run != open.end() && run->bytes + piece.bytes <= fusion_bytes) {
        runs[run->place].push_back(piece);
        run->bytes += piece.bytes;
        continue;
      }
      runs.push_back({piece});
      if (piece.bytes >= fusion_bytes) continue;
      const Run begun{&request, dtype, reductions[i].contributors, piece.bytes, runs.size() - 1};
      if (run != open.end()) *run = begun;
      else open.push_back(begun);
    }
  }
  return runs;
}

}  // namespace kolo::detail
