#!/usr/bin/env bash
# Installs a build into an empty folder, moves it, and builds and runs two outside projects against it, with the
# standard that their compiler takes by itself: tests/package, and the README's program with the README's CMake lines.
# Usage: tests/package/install_test.sh BUILD_FOLDER
set -euo pipefail
source_folder=$(cd "$(dirname "$0")" && pwd)
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A build in part installs nothing and says what it lacks. The copy of the rules looks for a program that is not there.
mkdir "$work/part"
sed "s|$build/bin/kolorun;|$build/bin/kolorun;$build/bin/kolo-missing;|; s|$build/bin/kolorun |&$build/bin/kolo-missing |" "$build/check_built.cmake" >"$work/part/check_built.cmake"
if output=$(cmake -P "$work/part/check_built.cmake" 2>&1); then echo "a missing program was not noticed" >&2; exit 1; fi
grep -q "missing are: kolo-missing" <<<"$(tr -s ' \n' ' ' <<<"$output")" || { echo "$output" >&2; exit 1; }
sed "s|$build/check_built.cmake|$work/part/check_built.cmake|" "$build/cmake_install.cmake" >"$work/part/cmake_install.cmake"
if cmake -DCMAKE_INSTALL_PREFIX="$work/part/prefix" -P "$work/part/cmake_install.cmake" >/dev/null 2>&1 || [ -e "$work/part/prefix" ]; then
  echo "a build in part must leave the prefix as it is" >&2
  exit 1
fi

cmake --install "$build" --prefix "$work/first" >"$work/install.log"
# What still points into the first place does not survive the move.
mv "$work/first" "$work/kolo"

build_outside() {  # SOURCES BUILD [TARGET]
  env -u CXXFLAGS cmake -S "$1" -B "$2" -G Ninja -DCMAKE_PREFIX_PATH="$work/kolo"
  cmake --build "$2" --target "${3:-all}"
}
build_outside "$source_folder" "$work/outside"
output=$("$work/outside/outside")
echo "$output"
expect() {
  grep -qxF "$1" <<<"$output" || { echo "expected the line \"$1\"" >&2; exit 1; }
}
expect "step 1, loss 2.302585"
# Ops of core and of collectives: none of the registering files was lost by a linker.
for op in Const Variable MatMul Conv2D SparseSoftmaxCrossEntropyWithLogits ApplyAdagrad GroupAllReduce BucketAllReduce; do expect "op $op"; done

output=$("$work/outside/clustered")
expect "ClusterSpec({'ps': ['p:1']})"
output=$("$work/outside/own_op")
expect "softsign 0.7500, slope 0.0625, by differences 0.0625"
if ldd "$work/outside/outside" | grep kolo_cluster; then echo "outside loads what it does not use" >&2; exit 1; fi

# The longest C++ block is the program.
mkdir "$work/readme"
block() {  # LANGUAGE
  awk -v begin="\`\`\`$1" '$0 == begin { inside = 1; text = ""; next }
    inside && $0 == "```" { inside = 0; if (length(text) > length(longest)) longest = text }
    inside { text = text $0 "\n" }
    END { printf "%s", longest }' "$source_folder/../../README.md"
}
block cpp >"$work/readme/main.cc"
block cmake >"$work/readme/CMakeLists.txt"
build_outside "$work/readme" "$work/readme_build"
output=$(cd "$work" && "$work/readme_build/outside" 3 generated)
echo "$output"
expect "trained up to step 3"

# The installed examples are a project: it lists each, and one of them stands for all.
build_outside "$work/kolo/share/kolo/examples/cpp" "$work/examples" your_own
for example in "$source_folder"/../../models/examples/*.cc; do
  name=$(basename "$example" .cc)
  [ -d "$work/examples/CMakeFiles/$name.dir" ] || case $name in
    between_graph_mnist | remote_session | sharded_embedding) [ ! -e "$work"/kolo/lib*/libkolo_cluster.so ] ;;
    *) false ;;
  esac || { echo "expected $name among the installed examples" >&2; exit 1; }
done
output=$(cd "$work" && "$work/examples/your_own")
expect "step 600: 100.0 % of 1000 samples"

# Where the programs are installed and a Python is here, each has a man page and completion.
if command -v python3 >/dev/null; then
  for program in kolorun kolo-train; do
    for file in "man/man1/$program.1" "bash-completion/completions/$program"; do
      [ -s "$work/kolo/share/$file" ] || { echo "expected share/$file in the installed folder" >&2; exit 1; }
    done
  done
fi

# Programs find libkolo beside them.
for program in "$work"/kolo/bin/*; do
  [ -x "$program" ] || continue
  "$program" --version
done
