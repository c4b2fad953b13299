#!/usr/bin/env bash
# The tutorial's program learns its samples, goes on from its checkpoint, and begins with weights from a file.
# Usage: your_own_test.sh MPIRUN_TEST RANKS YOUR_OWN
set -euo pipefail
mpirun_test=$1 ranks=$2 program=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

expect() {  # TEXT PATTERN
  grep -qE "$2" <<<"$1" || { echo "expected $2 in: $1" >&2; exit 1; }
}
expect "$("$mpirun_test" "$ranks" "$program" 2>&1)" '^step 600: (9[5-9]|100)\.[0-9] % of 1000 samples$'
expect "$("$mpirun_test" "$ranks" "$program" 2>&1)" '^step 600: (9[5-9]|100)\.[0-9] % of 1000 samples$'

# Its own weights at step 0, and samples of the user's.
mv your_own_logs/model.ckpt-600.safetensors weights.safetensors
rm -r your_own_logs
printf '%s\n' 0.5,0.1,0 -0.5,-0.1,1 0.5,0.1,0 -0.5,-0.1,1 >samples.csv
expect "$("$mpirun_test" "$ranks" "$program" samples.csv weights.safetensors 2>&1)" '^step 600: 100\.0 % of 4 samples$'
