// Attribute values: what the caller gave, or the declared default, in the declared type.
#pragma once

#include "node.h"
#include "report.h"
#include "request.h"

namespace twin::host {

// False after an error finding: unknown name, missing value, wrong type.
bool CheckAttrs(const ops::OpDef &op, const Request &request, Report &report);
// Declared ones, and behind them those of the registration, with their values.
void FillAttrs(const ops::OpDef &op, const Functions &functions, const Request &request,
               Attrs &attrs);

}  // namespace twin::host
