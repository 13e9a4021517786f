// Workers: all workers of a process; declared without the members of Worker.
#pragma once

#include <memory>
#include <vector>

namespace carpool::proxy {

class Worker;
using Workers = std::vector<std::unique_ptr<Worker>>;

}  // namespace carpool::proxy
