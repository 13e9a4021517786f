// Bound: a callback to a member function of one object: two words, no allocation, no ownership.
#pragma once

namespace carpool::exec {

class Bound {
 public:
  Bound() = default;
  // Calls object.Function(). `object` must outlive every call.
  template <auto Function, class T>
  static Bound to(T& object) {
    return Bound([](void* self) { (static_cast<T*>(self)->*Function)(); }, &object);
  }
  explicit operator bool() const { return call_ != nullptr; }
  void operator()() const { call_(object_); }

 private:
  Bound(void (*call)(void*), void* object) : call_(call), object_(object) {}
  void (*call_)(void*) = nullptr;
  void* object_ = nullptr;
};

}  // namespace carpool::exec
