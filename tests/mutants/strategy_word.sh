#!/bin/sh
# Negative control: the strategy's word with an order that publishes nothing. TSan must find that the moving loop's plain
# data is then read without synchronisation; if it does not, the test of the moving loop proves nothing.
# Usage: tests/mutants/strategy_word.sh [BUILD_DIR]
# LIBUV_SOURCE=DIR: libuv is built from there with TSan too, so that its internals are checked as well.
set -eu
cd "$(dirname "$0")/../.."
out=${1:-build/mutant-strategy-word}
mkdir -p "$out"
uv_cflags=$(pkg-config --cflags libuv) uv_libs=$(pkg-config --libs libuv)
if [ -n "${LIBUV_SOURCE:-}" ]; then
  mkdir -p "$out/uv"
  unix="async core dl fs getaddrinfo getnameinfo loop-watcher loop pipe poll process proctitle procfs-exepath random-devurandom
    random-getrandom random-sysctl-linux signal stream tcp thread tty udp linux linux-core linux-inotify linux-syscalls epoll"
  for file in "$LIBUV_SOURCE"/src/*.c $(printf "$LIBUV_SOURCE/src/unix/%s.c " $unix); do
    [ -e "$file" ] || continue
    ${CC:-cc} -O1 -g1 -w -fsanitize=thread -D_GNU_SOURCE -D_LARGEFILE_SOURCE -D_FILE_OFFSET_BITS=64 \
      -I"$LIBUV_SOURCE/include" -I"$LIBUV_SOURCE/src" -c "$file" -o "$out/uv/$(basename "$file" .c).o"
  done
  uv_cflags="-I$LIBUV_SOURCE/include" uv_libs="$out/uv/*.o -ldl"
fi
# compile TREE PROGRAM: all files as one, because most of a file's time are the headers.
compile() {
  (cd "$1" && printf '#include "%s"\n' exec/*.cc exec/uv/*.cc base/*.cc metrics/histogram.cc tests/unit/exec_loop_producer_test.cc \
    tests/unit/exec_driver_test.cc) >"$2.cc"
  # shellcheck disable=SC2086
  ${CXX:-c++} -std=c++20 -O1 -g1 -fsanitize=thread -I"$1" $uv_cflags $(pkg-config --cflags gtest) "$2.cc" $uv_libs \
    $(pkg-config --libs gtest gtest_main) -lpthread -o "$2"
}
run() {
  TSAN_OPTIONS=exitcode=66 timeout 120 "$1" --gtest_filter='LoopProducer.MovesTheLoop*:LoopProducer.KeepsTimers*:ADriver.*' >"$1.log" 2>&1
}
[ "${MUTANT_ONLY:-}" ] || {
  compile . "$out/original"
  run "$out/original" || { echo "the original is not clean: $out/original.log"; exit 1; }
}
rm -rf "$out/tree" && mkdir -p "$out/tree/tests"
cp -r base exec metrics "$out/tree" && cp -r tests/unit "$out/tree/tests"
right="kOrder = std::memory_order_acq_rel;" wrong="kOrder = std::memory_order_relaxed;"
sed -i "s/$right/$wrong/" "$out/tree/exec/strategy_word.h"
[ "$(grep -c "$wrong" "$out/tree/exec/strategy_word.h")" -eq 1 ] || { echo "exec/strategy_word.h has no line: $right"; exit 1; }
compile "$out/tree" "$out/mutant"
# The defect may also lose a wake-up: then the mutant hangs (124) after its races were reported.
code=0; run "$out/mutant" || code=$?
case $code in 66 | 124) grep -q "data race" "$out/mutant.log" ;; *) false ;; esac ||
  { echo "the mutant survived ($code): $out/mutant.log"; exit 1; }
echo "the mutant dies: $(grep -c 'WARNING: ThreadSanitizer: data race' "$out/mutant.log") data races found"
