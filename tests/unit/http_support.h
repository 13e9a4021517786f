// http_support.h: helpers of the proxy/http tests.
#pragma once

#include <gtest/gtest.h>

#include "tests/property/h1_reading.h"
