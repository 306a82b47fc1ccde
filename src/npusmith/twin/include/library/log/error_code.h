// Error codes of logs: none are told apart here.
#pragma once
#include "log/log.h"
