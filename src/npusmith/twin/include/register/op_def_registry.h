// What operator host files include first.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <utility>
#include "register/op_def.h"
#include "register/op_impl_registry.h"
#include "securec.h"
