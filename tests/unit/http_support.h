// What the tests of the HTTP room share.
#pragma once

#include <gtest/gtest.h>

#include "tests/property/h1_reading.h"
