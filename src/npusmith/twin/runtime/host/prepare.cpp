// Checks of a run's orders, and the node made from them.
#include "prepare.h"

#include <algorithm>

#include "attrs.h"
#include "graph/utils/type_utils.h"

namespace twin::host {

namespace {

constexpr std::size_t kTilingBytes = 64 * 1024;  // generous: CANN's limit depends on its version

using Orders = std::vector<TensorOrder>;
using Ports = std::vector<ops::OpParamDef>;

std::string TypeName(int type) {
  return ge::TypeUtils::DataTypeToSerialString(static_cast<ge::DataType>(type));
}

std::size_t CountOf(const Orders &orders, std::size_t port) {
  return static_cast<std::size_t>(std::count_if(
      orders.begin(), orders.end(), [&](const TensorOrder &order) { return order.port == port; }));
}

bool CheckPorts(const char *what, const Ports &ports, const Orders &orders, Report &report) {
  bool right = true;
  for (std::size_t at = 0; at < ports.size(); ++at) {
    const std::size_t count = CountOf(orders, at);
    const ops::Option kind = ports[at].Kind();
    if (count == 1 || kind == ops::DYNAMIC || (count == 0 && kind == ops::OPTIONAL)) continue;
    report.Add("inputs-mismatch", "error",
               std::string(what) + " " + ports[at].Name() + " got " + std::to_string(count) +
                   " tensors");
    right = false;
  }
  for (const TensorOrder &order : orders) {
    if (order.port < ports.size()) continue;
    report.Add("inputs-mismatch", "error",
               "the operator declares " + std::to_string(ports.size()) + " " + what +
                   "s, a tensor for number " + std::to_string(order.port + 1) + " was given");
    return false;
  }
  return right;
}

const TensorOrder *FirstOf(const Orders &orders, std::size_t port) {
  for (const TensorOrder &order : orders) {
    if (order.port == port) return &order;
  }
  return nullptr;
}

// A bool is a byte: CANN's own operators take it where uint8 or int8 is declared.
bool Same(int declared, int given, bool loosely) {
  const bool byte = declared == ge::DT_UINT8 || declared == ge::DT_INT8 || declared == ge::DT_BOOL;
  const bool bytes = given == ge::DT_UINT8 || given == ge::DT_INT8 || given == ge::DT_BOOL;
  const bool flag = declared == ge::DT_BOOL || given == ge::DT_BOOL;
  return declared == given || (loosely && byte && bytes && flag);
}

bool ColumnFits(const Ports &ports, const Orders &orders, std::size_t column, bool loosely) {
  for (std::size_t at = 0; at < ports.size(); ++at) {
    const TensorOrder *order = FirstOf(orders, at);
    const auto &types = ports[at].Types();
    if (order == nullptr || types.empty()) continue;
    if (ports[at].TypesAreColumns()) {
      if (column >= types.size() || !Same(types[column], order->dtype, loosely)) return false;
    } else if (std::none_of(types.begin(), types.end(), [&](const ge::DataType type) {
                 return Same(type, order->dtype, loosely);
               })) {
      return false;
    }
  }
  return true;
}

std::size_t Columns(const ops::OpDef &op) {
  std::size_t columns = 1;
  for (const Ports *ports : {&op.Inputs(), &op.Outputs()}) {
    for (const ops::OpParamDef &port : *ports) {
      if (port.TypesAreColumns()) columns = std::max(columns, port.Types().size());
    }
  }
  return columns;
}

// CANN compiles a kernel for each column of the DataType lists and for nothing else.
void CheckTypes(const ops::OpDef &op, const Request &request, Report &report) {
  const auto fits = [&](bool loosely) {
    for (std::size_t column = 0; column < Columns(op); ++column) {
      if (ColumnFits(op.Inputs(), request.inputs, column, loosely) &&
          ColumnFits(op.Outputs(), request.outputs, column, loosely)) {
        return true;
      }
    }
    return false;
  };
  if (fits(false)) return;
  std::string seen;
  for (const Orders *orders : {&request.inputs, &request.outputs}) {
    for (const TensorOrder &order : *orders) seen += (seen.empty() ? "" : ", ") + TypeName(order.dtype);
  }
  report.Add("opdef-dtype", fits(true) ? "warning" : "error",
             op.Type() + " is not declared for these element types", seen);
}

void CheckSoc(const ops::OpDef &op, const Request &request, Report &report) {
  const auto &configs = op.Core().Configs();
  if (configs.count(request.soc) > 0) return;
  std::string seen;
  for (const auto &config : configs) seen += (seen.empty() ? "" : ", ") + config.first;
  report.Add("opdef-soc", "warning", op.Type() + " has no AddConfig for " + request.soc,
             seen.empty() ? "no AddConfig at all" : seen, "AICore().AddConfig(\"" + request.soc + "\")");
}

bool CheckRefs(const ops::OpDef &op, Report &report) {
  bool right = true;
  for (const ops::OpParamDef &port : op.Outputs()) {
    if (!port.HasInitValue() || port.InitialValue() == 0) continue;
    report.Add("opdef-init", "error", "output " + port.Name() + " asks for an InitValue other than 0");
    right = false;
  }
  return right;
}

gert::Shape ShapeOf(const TensorOrder &order) {
  gert::Shape shape;
  for (const std::int64_t dim : order.dims) shape.AppendDim(dim);
  return shape;
}

void AddTensors(const Ports &ports, const Orders &orders, std::vector<gert::Tensor> &tensors,
                std::vector<gert::CompileTimeTensorDesc> &descs,
                std::vector<gert::AnchorInstanceInfo> &anchors) {
  for (std::size_t at = 0; at < ports.size(); ++at) {
    anchors.emplace_back(tensors.size(), CountOf(orders, at));
    for (const TensorOrder &order : orders) {
      if (order.port != at) continue;
      const auto type = static_cast<ge::DataType>(order.dtype);
      const ge::Format named = ports[at].FormatOf(order.dims.size());
      const gert::StorageFormat format(named, named);
      tensors.emplace_back(gert::StorageShape(ShapeOf(order), ShapeOf(order)), format, type, nullptr);
      descs.emplace_back(type, format);
    }
  }
}

std::string Text(const gert::Shape &shape) {
  std::string text = "[";
  for (std::size_t at = 0; at < shape.GetDimNum(); ++at) {
    text += (at == 0 ? "" : ", ") + std::to_string(shape.GetDim(at));
  }
  return text + "]";
}

}  // namespace

const ops::OpDef *ChooseOp(Report &report) {
  const auto &list = Ops();
  if (list.size() == 1) return &list[0];
  std::string seen;
  for (const ops::OpDef &op : list) seen += (seen.empty() ? "" : ", ") + op.Type();
  report.Add(list.empty() ? "project-no-op" : "project-two-ops", "error",
             "the host code registers " + std::to_string(list.size()) + " operators", seen);
  return nullptr;
}

Functions ChooseFunctions(const ops::OpDef &op) {
  Functions functions = Implementations()[op.Type()];
  if (op.Core().Tiling() != nullptr) functions.tiling = op.Core().Tiling();
  if (op.InferShape() != nullptr) functions.inferShape = op.InferShape();
  if (op.InferDataType() != nullptr) functions.inferType = op.InferDataType();
  return functions;
}

bool CheckOrders(const ops::OpDef &op, const Request &request, Report &report) {
  const bool inputs = CheckPorts("input", op.Inputs(), request.inputs, report);
  const bool outputs = CheckPorts("output", op.Outputs(), request.outputs, report);
  const bool attrs = CheckAttrs(op, request, report);
  if (!inputs || !outputs || !attrs || !CheckRefs(op, report)) return false;
  CheckTypes(op, request, report);
  CheckSoc(op, request, report);
  return true;
}

void FillNode(const ops::OpDef &op, const Functions &functions, const Request &request,
              const std::vector<Area> &inputs, Node &node) {
  node.type = op.Type();
  node.name = op.Type();
  AddTensors(op.Inputs(), request.inputs, node.inputs, node.inputDescs, node.inputAnchors);
  AddTensors(op.Outputs(), request.outputs, node.outputs, node.outputDescs, node.outputAnchors);
  for (std::size_t at = 0; at < request.inputs.size(); ++at) {
    const std::size_t port = request.inputs[at].port;
    const auto &wanted = functions.dataInputs;
    const bool onHost = op.Inputs()[port].ReadOnHost() ||
                        std::find(wanted.begin(), wanted.end(), port) != wanted.end();
    if (!onHost) continue;
    const gert::Tensor &old = node.inputs[at];
    node.inputs[at] = gert::Tensor(old.GetShape(), old.GetFormat(), old.GetDataType(),
                                   inputs[at].Base());
  }
  FillAttrs(op, functions, request, node.attrs);
  node.tilingBuffer.assign(kTilingBytes / 8, 0);
  node.tiling = gert::TilingData(node.tilingBuffer.data(), node.tilingBuffer.size() * 8);
}

void CheckInference(const ops::OpDef &op, const Functions &functions, const Request &request,
                    Node &node, Report &report) {
  if (functions.inferShape != nullptr) {
    node.inferredShapes.assign(request.outputs.size(), gert::Shape());
    gert::InferShapeContext context(&node);
    if (functions.inferShape(&context) != ge::GRAPH_SUCCESS) {
      report.Add("infer-shape", "warning", "InferShape of " + op.Type() + " failed");
    } else {
      for (std::size_t at = 0; at < request.outputs.size(); ++at) {
        const gert::Shape wanted = ShapeOf(request.outputs[at]);
        if (node.inferredShapes[at] == wanted) continue;
        report.Add("infer-shape", "warning",
                   "InferShape gives output " + std::to_string(at) + " the shape " +
                       Text(node.inferredShapes[at]) + ", the run has " + Text(wanted));
      }
    }
  }
  if (functions.inferType == nullptr) return;
  node.inferredTypes.assign(request.outputs.size(), ge::DT_UNDEFINED);
  gert::InferDataTypeContext context(&node);
  if (functions.inferType(&context) != ge::GRAPH_SUCCESS) {
    report.Add("infer-type", "warning", "InferDataType of " + op.Type() + " failed");
    return;
  }
  for (std::size_t at = 0; at < request.outputs.size(); ++at) {
    if (node.inferredTypes[at] == request.outputs[at].dtype) continue;
    report.Add("infer-type", "warning",
               "InferDataType gives output " + std::to_string(at) + " the type " +
                   TypeName(node.inferredTypes[at]) + ", the run has " +
                   TypeName(request.outputs[at].dtype));
  }
}

}  // namespace twin::host
