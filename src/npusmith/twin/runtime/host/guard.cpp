// Signal handlers that leave a step by a long jump.
#include "guard.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

namespace twin::host {

namespace {

constexpr std::size_t kSignalStack = 256 * 1024;
constexpr double kAlarmAgain = 0.05;  // seconds
constexpr std::uintptr_t kStackReach = 64 * 1024;  // a fault this near the stack pointer is on it

struct State {
  sigjmp_buf back;
  volatile sig_atomic_t active = 0;
  const char *phase = "";
  Outcome outcome;
  int note = -1;  // open from the start: a kernel's process opens nothing
};
State state;

std::uintptr_t StackPointer(void *context) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(
      static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return static_cast<std::uintptr_t>(static_cast<ucontext_t *>(context)->uc_mcontext.sp);
#else
  (void)context;
  return 0;
#endif
}

void SetAlarm(double seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  timer.it_value.tv_usec =
      static_cast<suseconds_t>((seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6);
  setitimer(ITIMER_PROF, &timer, nullptr);
  timer.it_value.tv_sec = static_cast<time_t>(seconds * kPatience) + 1;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// A short note with plain system calls: it survives when the jump back ends in a second crash.
void LeaveNote(int signal, const Spot &spot) {
  if (state.note < 0) return;
  char text[512];
  const int length = std::snprintf(text, sizeof text, "%s\n%d\n%s\n%d\n%d\n%s\n", state.phase,
                                   signal, spot.file, spot.line, spot.core, spot.api);
  if (length > 0 && pwrite(state.note, text, static_cast<std::size_t>(length), 0) < 0) _exit(3);
}

bool IsAlarm(int signal) { return signal == SIGPROF || signal == SIGALRM; }

void OnSignal(int signal, siginfo_t *info, void *context) {
  if (!state.active) {
    if (!IsAlarm(signal)) _exit(3);
    SetAlarm(kAlarmAgain);  // between two steps: the next one gets it
    return;
  }
  state.active = 0;
  Outcome &outcome = state.outcome;
  outcome.end = IsAlarm(signal) ? End::kTimedOut : End::kCrashed;
  outcome.signal = signal;
  outcome.spot = CurrentSpot();
  if (signal == SIGSEGV || signal == SIGBUS) {
    outcome.address = info->si_addr;
    const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const std::uintptr_t stack = StackPointer(context);
    outcome.stackOverflow = stack != 0 && at + kStackReach > stack && at < stack + kStackReach;
  }
  LeaveNote(signal, outcome.spot);
  siglongjmp(state.back, 1);
}

void OnNoMemory() {
  if (!state.active) std::abort();
  state.active = 0;
  state.outcome.end = End::kOutOfMemory;
  state.outcome.spot = CurrentSpot();
  LeaveNote(SIGKILL, state.outcome.spot);
  siglongjmp(state.back, 1);
}

// An exception that leaves a fibre cannot be caught here; this still learns what it said.
void OnTerminate() {
  state.outcome.stoppedByException = true;
  try {
    if (std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception &error) {
    state.outcome.exception = error.what();
  } catch (...) {
    state.outcome.exception = "an exception of another type";
  }
  std::abort();
}

}  // namespace

void StartDeadline(double seconds, const std::string &notePath) {
  state.note = -1;  // another process may have set it
  if (!notePath.empty()) {
    state.note = open(notePath.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  }
  void *memory = mmap(nullptr, kSignalStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory for the signal stack");
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kSignalStack;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = OnSignal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGPROF}) {
    sigaction(signal, &action, nullptr);
  }
  std::set_new_handler(OnNoMemory);
  std::set_terminate(OnTerminate);
  SetAlarm(seconds);
}

Outcome Guarded(const char *phase, const std::function<void()> &step) {
  state.outcome = Outcome{};
  state.phase = phase;
  if (sigsetjmp(state.back, 1) != 0) return state.outcome;
  state.active = 1;
  try {
    step();
  } catch (const std::exception &error) {
    state.outcome.end = End::kCrashed;
    state.outcome.stoppedByException = true;
    state.outcome.exception = error.what();
  }
  state.active = 0;
  return state.outcome;
}

}  // namespace twin::host
