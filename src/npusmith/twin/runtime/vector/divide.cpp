// Steps over an integer division that trapped (x86-64 only; other processors do not trap).
#include "vector/divide.h"

#include <ucontext.h>

#include <cstdint>

#include "core.h"

namespace twin {

namespace {

struct sigaction before;

#if defined(__x86_64__)

// Length of the operand that a ModRM byte begins.
int OperandLength(const std::uint8_t *at) {
  const int mode = at[0] >> 6, base = at[0] & 7;
  int length = 1;
  if (mode == 3) return length;
  if (base == 4) {  // SIB
    length += 1;
    if (mode == 0 && (at[1] & 7) == 5) length += 4;
  }
  if (mode == 0 && base == 5) length += 4;
  if (mode == 1) length += 1;
  if (mode == 2) length += 4;
  return length;
}

// Length of a 16-, 32- or 64-bit DIV or IDIV; 0 for anything else.
int DivideLength(const std::uint8_t *code) {
  int prefixes = 0;
  while (code[prefixes] == 0x66 || code[prefixes] == 0x67) prefixes += 1;
  if ((code[prefixes] & 0xF0) == 0x40) prefixes += 1;  // REX
  const std::uint8_t *at = code + prefixes;
  if (at[0] != 0xF7 || (at[1] >> 3 & 7) < 6) return 0;
  return prefixes + 1 + OperandLength(at + 1);
}

bool Skip(void *context) {
  auto &registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  const auto *code = reinterpret_cast<const std::uint8_t *>(registers[REG_RIP]);
  const int length = DivideLength(code);
  if (length == 0) return false;
  registers[REG_RDX] = registers[REG_RAX];
  registers[REG_RAX] = 0;
  registers[REG_RIP] += length;
  return true;
}

#else

bool Skip(void *) { return false; }

#endif

void OnTrap(int number, siginfo_t *info, void *context) {
  if (info->si_code == FPE_INTDIV && Skip(context)) {
    Report(Me().spot, "divide-zero", "an integer is divided by zero after this call", "",
           "a divisor other than 0", "", Level::kWarning);
    return;
  }
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    before.sa_sigaction(number, info, context);
    return;
  }
  sigaction(SIGFPE, &before, nullptr);  // whatever it was: the instruction runs into it again
}

}  // namespace

DivideWatch::DivideWatch() {
  struct sigaction action {};
  action.sa_sigaction = OnTrap;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGFPE, &action, &before_);
  before = before_;
}

DivideWatch::~DivideWatch() { sigaction(SIGFPE, &before_, nullptr); }

}  // namespace twin
