// Unit tests of the pages that are unmapped after the start.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "base/contents.h"
#include "base/fd.h"
#include "proxy/server/start_pages.h"

namespace carpool::proxy {
namespace {

constexpr std::string_view kFile = "1000-3000 r-xp 00002000 fe:00 1234          /usr/bin/carpool\n";

std::string with_anonymous(std::string_view mapping, int kilobytes) {
  return std::string(mapping) + "Size:      8 kB\nRss:      8 kB\nAnonymous:      " + std::to_string(kilobytes) +
         " kB\nVmFlags: rd ex mr mw me\n";
}

std::string found_in(const std::string& text_of_smaps) {
  std::istringstream smaps(text_of_smaps);
  std::string text;
  for (const FileMapping& one : clean_file_mappings(smaps)) {
    text += std::to_string(one.begin) + '-' + std::to_string(one.end) + ' ';
  }
  return text;
}

TEST(CleanFileMappings, AreThoseOfFiles) {
  EXPECT_EQ(found_in(with_anonymous(kFile, 0)), "4096-12288 ");
  EXPECT_EQ(found_in(with_anonymous("1000-3000 r--p 00000000 fe:00 1234    /usr/lib/a b.so (deleted)\n", 0)),
            "4096-12288 ");
  EXPECT_EQ(found_in(with_anonymous("1000-3000 r--p 00000000 00:00 0\n", 0)), "");
  EXPECT_EQ(found_in(with_anonymous("1000-3000 r-xp 00000000 00:00 0       [vdso]\n", 0)), "");
}

TEST(CleanFileMappings, AreNeitherWritableNorShared) {
  EXPECT_EQ(found_in(with_anonymous("1000-3000 rw-p 00002000 fe:00 1234     /usr/bin/carpool\n", 0)), "");
  EXPECT_EQ(found_in(with_anonymous("1000-3000 r--s 00002000 fe:00 1234     /run/data\n", 0)), "");
}

TEST(CleanFileMappings, HaveNoPageOfTheirOwn) {
  EXPECT_EQ(found_in(with_anonymous(kFile, 4) + with_anonymous("5000-6000 r--p 0 fe:00 1 /usr/lib/a.so\n", 0)),
            "20480-24576 ");
  EXPECT_EQ(found_in(with_anonymous(kFile, 0) + with_anonymous("5000-6000 r--p 0 fe:00 1 /usr/lib/a.so\n", 120)),
            "4096-12288 ");
  const std::string swapped = std::string(kFile) + "Rss:      0 kB\nAnonymous:      0 kB\nSwap:      8 kB\n";
  EXPECT_EQ(found_in(swapped), "") << "its relocations are not in the file";
  EXPECT_EQ(found_in(std::string(kFile) + "Anonymous:      0 kB\nSwap:      0 kB\nSwapPss:      0 kB\n"),
            "4096-12288 ");
}

TEST(CleanFileMappings, AreFoundInAnyText) {
  for (const char* text :
       {"", "\n", "-", "1000-", "1000-3000", "1000-3000 ", "1000-3000 r-xp", "x-y r-xp /a\n", "-- /\n"})
    EXPECT_EQ(found_in(text), "") << text;
}

class StartPages : public ::testing::Test {
 protected:
  static constexpr std::size_t kPages = 4;
  StartPages() : file_(::mkstemp(name_.data())), page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    const std::string text(kPages * page_, 'f');
    EXPECT_EQ(::write(file_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    void* const mapped = ::mmap(nullptr, text.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE, file_.get(), 0);
    EXPECT_NE(mapped, MAP_FAILED);
    bytes_ = static_cast<char*>(mapped);
  }
  ~StartPages() override {
    ::munmap(bytes_, kPages * page_);
    ::unlink(name_.c_str());
  }
  void make_read_only() { EXPECT_EQ(::mprotect(bytes_, kPages * page_, PROT_READ), 0); }
  // Returns the resident memory of the mapping in kilobytes.
  int resident() {
    const std::string smaps = *contents("/proc/self/smaps", std::size_t{64} * 1024 * 1024);
    const std::size_t mapping = smaps.find(name_);
    return mapping == std::string::npos ? -1 : std::atoi(smaps.c_str() + smaps.find("Rss:", mapping) + 4);
  }

  void give_back_mapping() {
    std::ifstream smaps("/proc/self/smaps");
    const auto begin = reinterpret_cast<std::size_t>(bytes_);
    give_back(clean_file_mappings(smaps), {begin, begin + kPages * page_});
  }

  std::string name_ = ::testing::TempDir() + "start_pages_XXXXXX";
  Fd file_;
  std::size_t page_;
  char* bytes_ = nullptr;
};

TEST_F(StartPages, AreUnmappedAndReadAgain) {
  const volatile char* const bytes = bytes_;
  make_read_only();
  for (std::size_t page = 0; page < kPages; ++page) EXPECT_EQ(bytes[page * page_], 'f');
  ASSERT_GT(resident(), 0);
  give_back_mapping();
  EXPECT_EQ(resident(), 0);
  for (std::size_t page = 0; page < kPages; ++page) EXPECT_EQ(bytes[page * page_], 'f');
}

TEST_F(StartPages, KeepWhatTheProcessHasWritten) {
  bytes_[page_] = 'w';
  make_read_only();
  give_back_mapping();
  EXPECT_EQ(const_cast<const volatile char*>(bytes_)[page_], 'w');
}

TEST_F(StartPages, AreThoseOfTheProgramAndItsLibraries) {
  const volatile char* const bytes = bytes_;
  make_read_only();
  EXPECT_EQ(bytes[0], 'f');
  const int before = resident();
  ASSERT_GT(before, 0);
  give_back_start_pages();
  EXPECT_EQ(resident(), before) << "another thread may unmap such a file at any time";
}

}  // namespace
}  // namespace carpool::proxy
