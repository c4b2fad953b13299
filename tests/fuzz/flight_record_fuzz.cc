// Flight records: what is read can be lined up and summed up, alone and beside itself on another rank.
#include <kolo/core/base/error.h>
#include <kolo/launcher/flight_records.h>

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const kolo::launcher::FlightRecord record =
        kolo::launcher::read_flight_record(kolo::write_fuzz_file(bytes, size));
    kolo::launcher::FlightRecord other = record;
    other.rank = record.rank == 0 ? 1 : 0;
    if (!other.operations.empty()) other.operations.pop_back();
    kolo::launcher::flight_summary({record});
    kolo::launcher::flight_summary(record.rank == 0 ? std::vector{record, other}
                                                    : std::vector{other, record});
  } catch (const kolo::Error&) {
  }
  return 0;
}
