// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/peer.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::measure {

TEST(PeerTest, GreetsAndAnswersLineByLine) {
  Peer peer({"sh", "-c", "echo ready; while read a b; do echo $b$b; done"});
  EXPECT_EQ(peer.greeting(), "ready");
  EXPECT_EQ(peer.ask("go 3"), "33");
  EXPECT_EQ(peer.ask("go 4"), "44");
}

TEST(PeerTest, AProgramThatIsNotThereIsNamedAsSuch) {
  EXPECT_THROW(Peer({"/no/such/python"}), base::Error);
}

}  // namespace lockstep::measure
