#include "proxy/commands/cli/origin_word.h"

#include <algorithm>

#include "proxy/config/text.h"

namespace carpool::proxy::cli {
namespace {

struct Known {
  std::string label, authority;  // "http://a:8080", "a:8080"
  std::vector<std::string> alias;
};

std::vector<Known> read(const Json& origins) {
  std::vector<Known> all;
  for (const Json& one : origins) {
    Known known{clean(one.value("origin", "")), {}, one.value("alias", std::vector<std::string>())};
    for (std::string& alias : known.alias) alias = clean(alias);
    const std::size_t slashes = known.label.find("://");
    known.authority = known.label.substr(slashes == std::string::npos ? 0 : slashes + 3);
    all.push_back(std::move(known));
  }
  return all;
}

template <class Matches>
std::vector<std::string> labels_where(const std::vector<Known>& all, Matches matches) {
  std::vector<std::string> found;
  for (const Known& one : all) {
    if (matches(one)) found.push_back(one.label);
  }
  return found;
}

std::string no_match(const std::string& word, const std::vector<Known>& all) {
  std::vector<std::string_view> words;
  for (const Known& one : all) {
    words.emplace_back(one.authority);
    words.insert(words.end(), one.alias.begin(), one.alias.end());
  }
  return "no origin has the alias " + config::in_quotes(word) + " or a URI that contains it; " +
         config::did_you_mean(word, words, "`carpool origins` lists them");
}

}  // namespace

OriginMatch find_origin(const std::string& word, const Json& origins) {
  const std::vector<Known> all = read(origins);
  const auto aliased = [&](const Known& one) {
    return std::find(one.alias.begin(), one.alias.end(), word) != one.alias.end();
  };
  std::vector<std::string> found = labels_where(all, aliased);
  if (found.empty()) found = labels_where(all, [&](const Known& one) { return one.authority == word; });
  if (found.empty())
    found = labels_where(all, [&](const Known& one) { return one.label.find(word) != std::string::npos; });
  if (found.size() == 1) return {std::move(found.front()), {}, false};
  if (found.empty()) return {{}, no_match(word, all), false};
  std::string error = config::in_quotes(word) + " is part of " + std::to_string(found.size()) + " origins' URIs:";
  for (const std::string& one : found) error.append("\n  ").append(one);
  return {{}, std::move(error), true};
}

std::string origin_names(const Json& origins) {
  const std::vector<Known> all = read(origins);
  std::string labels, aliases;
  for (const Known& one : all) {
    labels.append(one.label).append(1, '\n');
    for (const std::string& alias : one.alias) aliases.append(alias).append(1, '\n');
  }
  return labels + aliases;
}

}  // namespace carpool::proxy::cli
