// System-call filters as classic BPF (Linux kernel documentation, userspace-api/seccomp_filter).
#include "cage.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>
#include <vector>

namespace twin::host {

namespace {

using Steps = std::vector<sock_filter>;

#if defined(__x86_64__)
constexpr unsigned kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr unsigned kMachine = 0;
#endif
constexpr unsigned kX32 = 0x40000000;  // a second door to the same calls

void Load(Steps &steps, std::size_t offset) {
  steps.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset)));
}
void LoadArgument(Steps &steps, int index) {  // its low half
  Load(steps, offsetof(seccomp_data, args) + static_cast<std::size_t>(index) * 8);
}
void Return(Steps &steps, unsigned what) { steps.push_back(BPF_STMT(BPF_RET | BPF_K, what)); }
void Fail(Steps &steps, int error) {
  Return(steps, SECCOMP_RET_ERRNO | static_cast<unsigned>(error));
}

// `body` ends in a return on every path.
void When(Steps &steps, long call, const Steps &body) {
  const auto size = static_cast<unsigned char>(body.size());
  steps.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, size));
  steps.insert(steps.end(), body.begin(), body.end());
}

Steps Denied(int error = EPERM) {
  Steps body;
  Fail(body, error);
  return body;
}

Steps Allowed() {
  Steps body;
  Return(body, SECCOMP_RET_ALLOW);
  return body;
}

// Allowed when the argument has one of the bits, or when it has none of them.
Steps ByBits(int argument, unsigned bits, bool wanted) {
  Steps body;
  LoadArgument(body, argument);
  body.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
  const unsigned denied = SECCOMP_RET_ERRNO | EPERM;
  Return(body, wanted ? SECCOMP_RET_ALLOW : denied);
  Return(body, wanted ? denied : SECCOMP_RET_ALLOW);
  return body;
}

// Signals to this process alone: abort() sends one.
Steps ToItself() {
  Steps body;
  LoadArgument(body, 0);
  body.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(getpid()), 0, 1));
  Return(body, SECCOMP_RET_ALLOW);
  Fail(body, EPERM);
  return body;
}

Steps Begin() {
  Steps steps;
  Load(steps, offsetof(seccomp_data, arch));
  steps.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0));
  Return(steps, SECCOMP_RET_KILL_PROCESS);
  Load(steps, offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  steps.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1));
  Fail(steps, ENOSYS);
#endif
  return steps;
}

Steps ForHost() {
  Steps steps = Begin();
  for (const long call : {SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv,
                          SYS_process_vm_writev, SYS_tkill, SYS_rt_sigqueueinfo,
                          SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal}) {
    When(steps, call, Denied());
  }
#if defined(__x86_64__)
  When(steps, SYS_fork, Denied());
  When(steps, SYS_vfork, Denied());
#endif
  When(steps, SYS_clone3, Denied(ENOSYS));  // its flags cannot be seen; the C library takes clone then
  When(steps, SYS_clone, ByBits(0, CLONE_THREAD, true));
  When(steps, SYS_kill, ToItself());
  When(steps, SYS_tgkill, ToItself());
  Return(steps, SECCOMP_RET_ALLOW);
  return steps;
}

Steps ForKernel() {
  Steps steps = Begin();
  for (const long call :
       {SYS_read, SYS_write, SYS_writev, SYS_pwrite64, SYS_lseek, SYS_ftruncate, SYS_close, SYS_fstat,
        SYS_newfstatat, SYS_munmap, SYS_brk, SYS_madvise, SYS_mremap, SYS_futex, SYS_rt_sigaction,
        SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_exit, SYS_exit_group, SYS_getpid,
        SYS_gettid, SYS_clock_gettime, SYS_setitimer, SYS_sched_yield, SYS_restart_syscall,
        SYS_nanosleep, SYS_getrandom}) {
    When(steps, call, Allowed());
  }
  When(steps, SYS_mmap, ByBits(2, PROT_EXEC, false));
  When(steps, SYS_mprotect, ByBits(2, PROT_EXEC, false));
  When(steps, SYS_tgkill, ToItself());
  Fail(steps, EPERM);
  return steps;
}

}  // namespace

bool Close(Cage cage) {
  if (kMachine == 0) return false;
  Steps steps = cage == Cage::kHost ? ForHost() : ForKernel();
  sock_fprog program{static_cast<unsigned short>(steps.size()), steps.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

}  // namespace twin::host
