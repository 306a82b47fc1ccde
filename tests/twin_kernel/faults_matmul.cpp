// Pairs for the codes of the Matmul object: bad_<code>_<what> is caught on its line, good_ passes.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

#define ENTRY(name) extern "C" void name(void **args)
#define BOTH(name, ...)                                  \
  template <bool bad>                                    \
  void name(void **args);                                \
  ENTRY(bad_##name) { name<true>(args); }                \
  ENTRY(good_##name) { name<false>(args); }              \
  template <bool bad>                                    \
  void name(void **args)

// args: 0 A and 1 B of 64 x 64 half, 2 bias, 3 C of 64 x 64 float, 4 workspace
using A = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using T = MatmulType<TPosition::GM, CubeFormat::ND, half, true>;
using C = MatmulType<TPosition::GM, CubeFormat::ND, float>;
using Plain = Matmul<A, A, C>;

TCubeTiling Legal() {
  TCubeTiling t{};
  t.usedCoreNum = 1;
  t.M = t.N = t.Ka = t.Kb = t.singleCoreM = t.singleCoreN = t.singleCoreK = 64;
  t.baseM = t.baseN = t.baseK = 32;
  t.depthA1 = t.depthB1 = t.stepM = t.stepN = t.stepKa = t.stepKb = 1;
  t.dbL0A = t.dbL0B = t.dbL0C = 1;
  return t;
}

template <typename E>
GlobalTensor<E> Tensor(void *at) {
  GlobalTensor<E> tensor;
  tensor.SetGlobalBuffer(static_cast<E *>(at));
  return tensor;
}

// A pipe and an object that is ready for IterateAll.
template <typename MM>
struct Setting {
  TPipe pipe;
  MM mm;
  TCubeTiling tiling = Legal();

  Setting(void **args, bool operands = true) {
    REGIST_MATMUL_OBJ(&pipe, static_cast<GM_ADDR>(args[4]), mm, &tiling);
    if (!operands) return;
    mm.SetTensorA(Tensor<half>(args[0]));
    mm.SetTensorB(Tensor<half>(args[1]));
  }
};

#define TILING(name, change)                                                          \
  BOTH(name) {                                                                        \
    TPipe pipe;                                                                       \
    Plain mm;                                                                         \
    TCubeTiling t = Legal();                                                          \
    if (bad) change;                                                                  \
    REGIST_MATMUL_OBJ(&pipe, static_cast<GM_ADDR>(args[4]), mm, &t);  /* caught */    \
    mm.SetTensorA(Tensor<half>(args[0]));                                             \
    mm.SetTensorB(Tensor<half>(args[1]));                                             \
    mm.IterateAll(Tensor<float>(args[3]));                                            \
    mm.End();                                                                         \
  }

TILING(cube_tiling_base, t.baseM = 40)
TILING(cube_tiling_l0a, (t.baseM = 256, t.baseK = 128, t.dbL0A = 2))
TILING(cube_tiling_l0c, (t.baseM = t.baseN = 256))
TILING(cube_tiling_depth, t.depthA1 = 3)
TILING(cube_tiling_l1, (t.stepKa = t.depthA1 = 300))
TILING(cube_tiling_empty, t = TCubeTiling{})
TILING(cube_tiling_cores, t.usedCoreNum = 49)

BOTH(cube_tiling_row) {
  static constexpr MatmulConfig longRows = GetNormalConfig(true);
  using MM = std::conditional_t<bad, Plain, Matmul<A, A, C, C, longRows>>;
  Setting<MM> at(args);
  at.mm.SetOrgShape(1, 64, 65600, 65600);
  at.mm.SetSingleShape(1, 64, 65600);
  at.mm.SetTensorA(Tensor<half>(args[5]));
  at.mm.SetTensorB(Tensor<half>(args[5]));
  at.mm.IterateAll(Tensor<float>(args[3]));  // caught
}

BOTH(matmul_operand_missing) {
  Setting<Plain> at(args, false);
  at.mm.SetTensorA(Tensor<half>(args[0]));
  if (!bad) at.mm.SetTensorB(Tensor<half>(args[1]));
  at.mm.IterateAll(Tensor<float>(args[3]));  // caught
}

BOTH(matmul_operand_transposed) {
  Setting<Matmul<A, std::conditional_t<bad, A, T>, C>> at(args);
  at.mm.SetTensorB(Tensor<half>(args[1]), true);
  at.mm.IterateAll(Tensor<float>(args[3]));  // caught
}

BOTH(matmul_operand_shape) {
  Setting<Plain> at(args);
  at.mm.SetSingleShape(16, 16, bad ? 65 : 64);
  at.mm.IterateAll(Tensor<float>(args[3]));  // caught
}

BOTH(matmul_operand_bias) {
  Setting<Plain> at(args);
  at.mm.SetBias(Tensor<float>(args[2]));
  if (!bad) at.mm.DisableBias();
  at.mm.IterateAll(Tensor<float>(args[3]));  // caught
}

BOTH(matmul_operand_rows) {
  using V = MatmulType<TPosition::VECIN, CubeFormat::ND, float>;
  Setting<Matmul<A, A, V>> at(args);
  TBuf<TPosition::VECIN> buffer;
  at.pipe.InitBuffer(buffer, 64 * 64 * sizeof(float));
  at.mm.SetTail(64, bad ? 60 : 56);
  at.mm.IterateAll(buffer.Get<float>());  // caught
}

BOTH(matmul_order_fetch) {
  Setting<Plain> at(args);
  if (!bad) at.mm.Iterate();
  at.mm.GetTensorC(Tensor<float>(args[3]));  // caught
}

BOTH(matmul_order_init) {
  TPipe pipe;
  Plain mm;
  TCubeTiling t = Legal();
  REGIST_MATMUL_OBJ(&pipe, static_cast<GM_ADDR>(args[4]), mm);
  if (!bad) mm.Init(&t);
  mm.SetTensorA(Tensor<half>(args[0]));
  mm.SetTensorB(Tensor<half>(args[1]));
  mm.IterateAll(Tensor<float>(args[3]));  // caught
}

BOTH(matmul_order_wait) {
  Setting<Plain> at(args);
  at.mm.template IterateAll<false>(Tensor<float>(args[3]), 0, false, !bad);
  at.mm.WaitIterateAll();  // caught
}

BOTH(matmul_order_workspace) {
  Setting<Plain> at(args);
  auto workspace = Tensor<float>(static_cast<std::uint8_t *>(args[4]) + (1 << 24));
  if (!bad) at.mm.SetWorkspace(workspace);
  at.mm.template Iterate<false>();
  at.mm.template GetTensorC<false>(Tensor<float>(args[3]));  // caught
}

BOTH(matmul_order_core) {
  using MM = std::conditional_t<bad, MatmulImpl<A, A, C>, Plain>;
  Setting<MM> at(args);
  at.mm.IterateAll(Tensor<float>(args[3]));  // caught
}

BOTH(mix_workspace) {
  TPipe pipe;
  Plain mm;
  TCubeTiling t = Legal();
  GM_ADDR workspace = static_cast<GM_ADDR>(args[bad ? 3 : 4]);
  REGIST_MATMUL_OBJ(&pipe, workspace, mm, &t);  // caught
  mm.SetTensorA(Tensor<half>(args[0]));
  mm.SetTensorB(Tensor<half>(args[1]));
  mm.IterateAll(Tensor<float>(args[3]));
}

BOTH(gm_bounds) {
  Setting<Plain> at(args);
  at.mm.IterateAll(Tensor<float>(args[3])[bad ? 1 : 0]);  // caught
}

// The message to the cube core follows the copies that MTE3 was given before it, and no others.
BOTH(hazard_operand_of_a_message) {
  Setting<Plain> at(args);
  auto workspace = Tensor<float>(static_cast<std::uint8_t *>(args[4]) + (1 << 24));
  auto left = Tensor<half>(static_cast<std::uint8_t *>(args[4]) + (1 << 24) + 64 * 64 * 4);
  TBuf<TPosition::VECOUT> buffer;
  at.pipe.InitBuffer(buffer, 64 * 64 * sizeof(half));
  Duplicate(buffer.Get<half>(), static_cast<half>(1.0f), 64 * 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(left, buffer.Get<half>(), 64 * 64);
  at.mm.SetTensorA(left);
  at.mm.SetWorkspace(workspace);
  at.mm.template Iterate<false>();
  if (bad) PipeBarrier<PIPE_MTE3>();
  if (bad) DataCopy(left, buffer.Get<half>(), 64 * 64);
  at.mm.template GetTensorC<false>(Tensor<float>(args[3]));  // caught
}

// It waits for nothing else: what MTE2 still reads the product may overwrite.
BOTH(hazard_result_of_a_message) {
  Setting<Plain> at(args);
  TBuf<TPosition::VECIN> buffer;
  at.pipe.InitBuffer(buffer, 64 * 64 * sizeof(float));
  DataCopy(buffer.Get<float>(), Tensor<float>(args[3]), 64 * 64);
  if (!bad) PipeBarrier<PIPE_ALL>();
  at.mm.IterateAll(Tensor<float>(args[3]));  // caught
}
