// Iterates over the members of all fields of one name, which are one list (RFC 9110 §5.3).
#pragma once

#include <cstddef>
#include <string_view>

#include "proxy/http/list_tokens.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

class MemberReader {
 public:
  // `fields` must outlive the reader and its members.
  MemberReader(const Fields& fields, FieldName name) : fields_(fields), name_(name) {}

  // Gets the next member that is not empty; returns false at the end.
  bool next(std::string_view& member) {
    while (!list_.next(member)) {
      while (next_ != fields_.size() && fields_.id(next_) != name_) ++next_;
      if (next_ == fields_.size()) return false;
      list_ = ListReader(fields_[next_++].value);
    }
    return true;
  }

 private:
  const Fields& fields_;
  FieldName name_;
  std::size_t next_ = 0;
  ListReader list_{{}};  // of the field before next_
};

}  // namespace carpool::proxy::http
