// The log of the driver, which is never on here.
#pragma once

enum TwinLogModule { OP = 63 };
enum { DLOG_DEBUG, DLOG_INFO, DLOG_WARN, DLOG_ERROR };
inline int CheckLogLevel(int, int) { return 0; }
inline int AlogCheckDebugLevel(int, int) { return 0; }
#define dlog_debug(module, ...) static_cast<void>(module)
#define dlog_info(module, ...) static_cast<void>(module)
#define dlog_warn(module, ...) static_cast<void>(module)
#define dlog_error(module, ...) static_cast<void>(module)
