// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/quiet_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace lockstep::loader {
namespace {

TEST(QuietThreadTest, HasANameAndStandsBackWithoutItsProcess) {
  const int before = getpriority(PRIO_PROCESS, 0);
  std::jthread([before] {
    settle_quiet_thread("ls-decode-1234567");
    char name[32] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    EXPECT_STREQ(name, "ls-decode-12345");
    EXPECT_GE(getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))), before);
  }).join();
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), before);
}

TEST(QuietThreadTest, LeavesCoresFreeOnlyWhenTwiceAsManyRemain) {
  std::jthread([] {
    cpu_set_t before, after;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    const int cores = CPU_COUNT(&before);
    EXPECT_FALSE(leave_cores_free(0));
    EXPECT_FALSE(leave_cores_free(cores / 3 + 1));
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
    if (cores < 3) return;
    EXPECT_TRUE(leave_cores_free(cores / 3));
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_EQ(CPU_COUNT(&after), cores - cores / 3);
  }).join();
}

}  // namespace
}  // namespace lockstep::loader
