// Unit tests of PendingPlaces: the two counts are independent, and neither falls below zero.
#include "pool/destination/pending_places.h"

#include <gtest/gtest.h>

namespace carpool::pool {
namespace {

TEST(PendingPlaces, CountsInspectionsAndDisposalsApart) {
  PendingPlaces pending;
  pending.inspection_begun();
  pending.inspection_begun();
  pending.disposal_begun();
  EXPECT_EQ(2U, pending.inspecting());
  EXPECT_EQ(1U, pending.disposing());
  pending.inspection_ended();
  pending.disposal_ended();
  EXPECT_EQ(1U, pending.inspecting());
  EXPECT_EQ(0U, pending.disposing());
}

TEST(PendingPlacesDeathTest, EndsOnlyWhatBegan) {
  EXPECT_DEATH(PendingPlaces().inspection_ended(), "inspections_");
  EXPECT_DEATH(PendingPlaces().disposal_ended(), "disposals_");
}

}  // namespace
}  // namespace carpool::pool
