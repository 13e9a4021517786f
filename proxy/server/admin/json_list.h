// JsonList: {"NAME": [ … ]}, rendered one list element at a time, byte for byte as one Json document. Included by
// admin's .cc files only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/server/admin/json.h"

namespace carpool::proxy::admin {

template <class Record, class Render>
class JsonList final : public Pieces {
 public:
  JsonList(std::string_view name, std::vector<Record> all, Render render)
      : name_(name), all_(std::move(all)), render_(std::move(render)) {}

  bool next(std::string& out) override {
    if (at_ == 0) out.append("{\n  \"").append(name_).append("\": [");
    if (at_ < all_.size()) {
      out.append(at_ == 0 ? "\n" : ",\n");
      append_member(out, render_(all_[at_]));
      all_[at_++] = Record{};  // frees the element, which is no longer needed
    }
    if (at_ < all_.size()) return true;
    out.append(all_.empty() ? "]\n}\n" : "\n  ]\n}\n");
    return false;
  }

 private:
  const std::string_view name_;
  std::vector<Record> all_;
  const Render render_;
  std::size_t at_ = 0;
};

// `name` is a constant; render(record) returns the Json of one element.
template <class Record, class Render>
Response list_response(std::string_view name, std::vector<Record> all, Render render) {
  Response response = text_response(200, "application/json", {});
  response.pieces = std::make_unique<JsonList<Record, Render>>(name, std::move(all), std::move(render));
  return response;
}

}  // namespace carpool::proxy::admin
