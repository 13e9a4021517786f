// Unit tests of splits: however the bytes are cut, a parser gives the same messages or the same kind of fault.
#include <fstream>
#include <random>

#include "tests/unit/http_support.h"

namespace carpool::proxy::http {
namespace {

using namespace std::string_view_literals;

std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out.push_back(text[i]);
      continue;
    }
    switch (text[++i]) {
      case 'r':
        out.push_back('\r');
        break;
      case 'n':
        out.push_back('\n');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'x':
        out.push_back(static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16)));
        i += 2;
        break;
      default:
        out.push_back(text[i]);
    }
  }
  return out;
}

std::vector<std::string> streams(const char* file) {
  std::ifstream in(std::string(CARPOOL_SOURCE_DIR) + "/tests/property/" + file);
  std::vector<std::string> found;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with('#')) found.push_back(unescape(line));
  }
  return found;
}

std::vector<std::size_t> random_cuts(std::mt19937& random, std::size_t size) {
  std::vector<std::size_t> cuts(random() % 6);
  for (std::size_t& cut : cuts) cut = random() % (size + 1);
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

// Returns the bytes with one byte changed, dropped or doubled.
std::string mutated(std::mt19937& random, std::string bytes) {
  constexpr std::string_view kLikely = "\r\n\t :;,0fg\0\x7F\xFF"sv;
  if (bytes.empty()) return bytes;
  const std::size_t at = random() % bytes.size();
  switch (random() % 3) {
    case 0:
      bytes[at] = kLikely[random() % kLikely.size()];
      break;
    case 1:
      bytes.erase(at, 1);
      break;
    default:
      bytes.insert(at, 1, kLikely[random() % kLikely.size()]);
  }
  return bytes;
}

// Layouts that are known from earlier messages, of other bytes among them, change nothing.
template <class Read>
void same_with_layouts(const std::vector<std::string>& all, std::mt19937& random, const Read& read) {
  FieldLayouts layouts;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = all[random() % all.size()];
    if (i % 4 == 0) bytes = mutated(random, bytes);
    const Reading parsed = read(bytes, nullptr);
    for (int time = 0; time < 2; ++time) ASSERT_EQ(read(bytes, &layouts), parsed) << bytes << "\n" << parsed.text;
    if (i % 5'000 == 0) layouts.sweep();
  }
}

// Every single cut, all cuts at once, and some random ones.
template <class Read>
void same_for_all_splits(const std::string& bytes, std::mt19937& random, const Read& read) {
  const Reading whole = read(bytes, {});
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    ASSERT_EQ(read(bytes, {cut}), whole) << "cut at " << cut << ":\n" << bytes << "\n" << whole.text << whole.detail;
  }
  ASSERT_EQ(read(bytes, every_byte(bytes.size())), whole) << bytes << "\n" << whole.text << whole.detail;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(read(bytes, random_cuts(random, bytes.size())), whole) << bytes;
}

TEST(AnySplit, OfRequestsReadsTheSame) {
  std::mt19937 random(1);
  const std::vector<std::string> all = streams("h1_requests.txt");
  ASSERT_GT(all.size(), 100U);
  const auto read = [](const std::string& bytes, const std::vector<std::size_t>& cuts) {
    return read_requests(bytes, cuts);
  };
  for (const std::string& bytes : all) same_for_all_splits(bytes, random, read);
}

TEST(AnySplit, OfMutatedRequestsReadsTheSame) {
  std::mt19937 random(2);
  const std::vector<std::string> all = streams("h1_requests.txt");
  const Limits tight{.header_bytes = 150, .headers = 4, .target = 40};
  for (int i = 0; i < 4000; ++i) {
    const std::string bytes = mutated(random, mutated(random, all[random() % all.size()]));
    const std::vector<std::size_t> cuts = random_cuts(random, bytes.size());
    ASSERT_EQ(read_requests(bytes), read_requests(bytes, cuts)) << bytes;
    ASSERT_EQ(read_requests(bytes, {}, tight), read_requests(bytes, every_byte(bytes.size()), tight)) << bytes;
  }
}

TEST(AnySplit, OfResponsesReadsTheSame) {
  std::mt19937 random(3);
  const std::vector<std::string> all = streams("h1_responses.txt");
  ASSERT_GT(all.size(), 20U);
  for (const char* method : {"GET", "HEAD", "CONNECT"}) {
    for (const bool upgrade : {false, true}) {
      const auto read = [&](const std::string& bytes, const std::vector<std::size_t>& cuts) {
        return read_response(bytes, cuts, method, upgrade);
      };
      for (const std::string& bytes : all) same_for_all_splits(bytes, random, read);
    }
  }
}

TEST(AnySplit, OfMutatedResponsesReadsTheSame) {
  std::mt19937 random(4);
  const std::vector<std::string> all = streams("h1_responses.txt");
  const Limits tight{.header_bytes = 60, .headers = 2, .target = 40};
  for (int i = 0; i < 4000; ++i) {
    const std::string bytes = mutated(random, mutated(random, all[random() % all.size()]));
    const std::vector<std::size_t> cuts = random_cuts(random, bytes.size());
    ASSERT_EQ(read_response(bytes), read_response(bytes, cuts)) << bytes;
    ASSERT_EQ(read_response(bytes, {}, "GET", false, tight),
              read_response(bytes, every_byte(bytes.size()), "GET", false, tight))
        << bytes;
  }
}

TEST(KnownLayouts, OfRequestsReadTheSame) {
  std::mt19937 random(5);
  const Limits tight{.header_bytes = 150, .headers = 4, .target = 40};
  same_with_layouts(streams("h1_requests.txt"), random, [&](const std::string& bytes, FieldLayouts* layouts) {
    return read_requests(bytes, {}, bytes.size() % 2 == 0 ? tight : Limits(), layouts);
  });
}

TEST(KnownLayouts, OfResponsesReadTheSame) {
  std::mt19937 random(6);
  same_with_layouts(streams("h1_responses.txt"), random, [](const std::string& bytes, FieldLayouts* layouts) {
    return read_response(bytes, {}, "GET", false, {}, layouts);
  });
}

}  // namespace
}  // namespace carpool::proxy::http
