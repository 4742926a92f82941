// SPDX-License-Identifier: Apache-2.0
// hypot and std::condition_variable::wait as older systems have them: see wheel.cmake. The linker's --wrap leads every
// call of ours here.
__asm__(".symver lockstep_hypot, hypot@GLIBC_2.2.5");
__asm__(".symver lockstep_wait, _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");

extern "C" {
double lockstep_hypot(double x, double y);
void lockstep_wait(void* condition, void* lock);

__attribute__((visibility("hidden"))) double __wrap_hypot(double x, double y) {
  return lockstep_hypot(x, y);
}

__attribute__((visibility("hidden"))) void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
    void* condition, void* lock) {
  lockstep_wait(condition, lock);
}
}
