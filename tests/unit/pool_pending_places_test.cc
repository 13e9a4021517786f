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

TEST(PendingPlaces, CountsAnInspectionThatEndedSinceASearchBegan) {
  PendingPlaces pending;
  pending.inspection_begun();
  pending.inspection_ended();
  pending.inspection_begun();
  const std::uint32_t ended = pending.inspections_ended();
  pending.inspection_ended();
  EXPECT_EQ(0U, pending.inspecting());
  EXPECT_EQ(1U, pending.inspecting_since(ended));
  pending.inspection_begun();
  EXPECT_EQ(2U, pending.inspecting_since(ended)) << "one that began meanwhile is missed too";
  pending.inspection_ended();
}

TEST(PendingPlacesDeathTest, EndsOnlyWhatBegan) {
  EXPECT_DEATH(PendingPlaces().inspection_ended(), "begun_");
  EXPECT_DEATH(PendingPlaces().disposal_ended(), "disposals_");
}

}  // namespace
}  // namespace carpool::pool
