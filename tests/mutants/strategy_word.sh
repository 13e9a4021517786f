#!/bin/sh
# Negative control: the strategy's word with an order that publishes nothing. TSan must find that the moving loop's plain
# data is then read by a thread that was never told of it; if it does not, the test of the moving loop proves nothing.
# Usage: tests/mutants/strategy_word.sh [BUILD_DIR]
set -eu
cd "$(dirname "$0")/../.."
out=${1:-build/mutant-strategy-word}
mkdir -p "$out"
compile() {
  # shellcheck disable=SC2086
  ${CXX:-c++} -std=c++20 -O1 -g1 -fsanitize=thread $1 -I. $(pkg-config --cflags libuv gtest) \
    exec/*.cc exec/uv/*.cc base/*.cc metrics/histogram.cc tests/unit/exec_loop_producer_test.cc \
    $(pkg-config --libs libuv gtest gtest_main) -lpthread -o "$2"
}
run() { TSAN_OPTIONS=exitcode=66 "$1" --gtest_filter='LoopProducer.MovesTheLoop*:LoopProducer.KeepsTimers*' >"$1.log" 2>&1; }
[ "${MUTANT_ONLY:-}" ] || {
  compile "" "$out/original"
  run "$out/original" || { echo "the original is not clean: $out/original.log"; exit 1; }
}
compile -DCARPOOL_MUTANT_STRATEGY_WORD "$out/mutant"
code=0; run "$out/mutant" || code=$?
[ "$code" -eq 66 ] && grep -q "data race" "$out/mutant.log" || { echo "the mutant survived ($code): $out/mutant.log"; exit 1; }
echo "the mutant dies: $(grep -c 'WARNING: ThreadSanitizer: data race' "$out/mutant.log") data races found"
