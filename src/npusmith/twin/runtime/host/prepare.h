// From the operator's declaration and the orders of a run to the node that host functions see.
#pragma once

#include <memory>
#include <vector>

#include "memory.h"
#include "node.h"
#include "report.h"
#include "request.h"

namespace twin::host {

// The one operator that the loaded project declares; null after a finding.
const ops::OpDef *ChooseOp(Report &report);
// The functions in force: SetTiling and its like win over IMPL_OP chains.
Functions ChooseFunctions(const ops::OpDef &op);
// Checks ports, dtypes, attributes and chip against the declaration; false after an error.
bool CheckOrders(const ops::OpDef &op, const Request &request, Report &report);
// Fills the node. `inputs` holds one area per input order.
void FillNode(const ops::OpDef &op, const Functions &functions, const Request &request,
              const std::vector<Area> &inputs, Node &node);
// Compares what InferShape and InferDataType say with the outputs that the run has.
void CheckInference(const ops::OpDef &op, const Functions &functions, const Request &request,
                    Node &node, Report &report);

}  // namespace twin::host
