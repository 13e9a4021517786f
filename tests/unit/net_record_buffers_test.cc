// Unit tests of the record buffers that a thread keeps.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "proxy/net/tls/record_buffers.h"

namespace carpool::proxy::tls {
namespace {

// malloc() leaves a remainder with the block if it is too small for one of its own; such a block is of another size.
void* malloc_buffer() {
  std::vector<void*> larger;
  void* block = std::malloc(RecordBuffers::kBlock);
  for (; ::malloc_usable_size(block) >= RecordBuffers::kBlock + alignof(std::max_align_t);
       block = std::malloc(RecordBuffers::kBlock)) {
    larger.push_back(block);
  }
  for (void* const other : larger) std::free(other);
  return block;
}

TEST(RecordBuffersOfAThread, GiveBackTheLastOneFirstAndKeepNoMoreThanTwo) {
  RecordBuffers buffers;
  EXPECT_EQ(buffers.take(), nullptr);
  void* const one = malloc_buffer();
  void* const two = malloc_buffer();
  void* const third = malloc_buffer();
  EXPECT_TRUE(buffers.keep(one));
  EXPECT_TRUE(buffers.keep(two));
  EXPECT_FALSE(buffers.keep(third)) << "the caller frees it";
  std::free(third);
  EXPECT_EQ(buffers.take(), two);
  EXPECT_EQ(buffers.take(), one);
  EXPECT_EQ(buffers.take(), nullptr);
  EXPECT_TRUE(buffers.keep(one));
  EXPECT_TRUE(buffers.keep(two));
  buffers.close();
  EXPECT_EQ(buffers.take(), nullptr);
}

TEST(RecordBuffersOfAThread, KeepNoBlockOfAnotherSize) {
  RecordBuffers buffers;
  for (const std::size_t size : {std::size_t{1}, RecordBuffers::kLeast, RecordBuffers::kBlock + 64}) {
    void* const block = std::malloc(size);
    EXPECT_FALSE(buffers.keep(block)) << size;
    std::free(block);
  }
}

TEST(RecordBuffersOfAThread, KeepNothingOnceTheThreadEnds) {
  RecordBuffers buffers;
  buffers.close();
  void* const late = malloc_buffer();
  EXPECT_FALSE(buffers.keep(late));
  std::free(late);
}

}  // namespace
}  // namespace carpool::proxy::tls
