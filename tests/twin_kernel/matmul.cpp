// Matmul objects of many kinds: A, B, bias, C, workspace; then tiling and what the test asks.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

struct Ask {
  TCubeTiling tiling;
  std::int64_t transA, transB, atomic, sequential, way;
  std::int64_t org[5];     // M, N, Ka, Kb, Kc; -1: leave
  std::int64_t single[3];  // -1: leave
  std::int64_t offset[3];  // elements of A, B, C
  std::int64_t quant;      // SetQuantScalar when not 0; -1: SetQuantVector, in place of bias
  std::int64_t batch[2];
  std::int64_t bias, hf32;
};

template <typename T>
GlobalTensor<T> Tensor(void *at, std::int64_t offset = 0) {
  GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(static_cast<T *>(at) + offset);
  return tensor;
}

template <typename MM>
void Prepare(MM &mm, void **args, const Ask &ask) {
  if (ask.org[0] >= 0) mm.SetOrgShape(ask.org[0], ask.org[1], ask.org[2], ask.org[3], ask.org[4]);
  if (ask.single[0] >= 0) mm.SetSingleShape(ask.single[0], ask.single[1], ask.single[2]);
  mm.SetTensorA(Tensor<typename MM::SrcAT>(args[0], ask.offset[0]), ask.transA);
  mm.SetTensorB(Tensor<typename MM::SrcBT>(args[1], ask.offset[1]), ask.transB);
  if (ask.bias) mm.SetBias(Tensor<typename MM::BiasT>(args[2]));
  if (ask.quant == -1) mm.SetQuantVector(Tensor<std::uint64_t>(args[2]));
  else if (ask.quant) mm.SetQuantScalar(static_cast<std::uint64_t>(ask.quant));
  if (ask.hf32) mm.SetHF32(true, 0);
}

// The base blocks through UB, one after the other, to consecutive places of C.
template <typename MM>
void ThroughUb(MM &mm, GlobalTensor<typename MM::DstT> c, const Ask &ask, TPipe &pipe) {
  using T = typename MM::DstT;
  TQue<TPosition::VECIN, 1> queue;
  const std::int32_t block = ask.tiling.baseM * ask.tiling.baseN;
  pipe.InitBuffer(queue, 1, block * sizeof(T));
  for (std::int64_t i = 0; mm.template Iterate<true>(); ++i) {
    auto local = queue.template AllocTensor<T>();
    mm.template GetTensorC<true>(local, 0, true);
    queue.EnQue(local);
    local = queue.template DeQue<T>();
    auto out = c[i * block];
    SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    DataCopy(out, local, block);
    PipeBarrier<PIPE_ALL>();
    queue.FreeTensor(local);
  }
}

template <typename MM>
void Run(void **args) {
  Ask ask;
  __builtin_memcpy(&ask, args[5], sizeof ask);
  TPipe pipe;
  MM mm;
  REGIST_MATMUL_OBJ(&pipe, static_cast<GM_ADDR>(args[4]), mm, &ask.tiling);
  using C = typename MM::DstT;
  auto c = Tensor<C>(args[3], ask.offset[2]);
  Prepare(mm, args, ask);
  const auto atomic = static_cast<std::uint8_t>(ask.atomic);
  switch (ask.way) {
    case 0: mm.IterateAll(c, atomic, ask.sequential); break;
    case 1:
      while (mm.Iterate()) mm.GetTensorC(c, atomic, false);
      break;
    case 2: ThroughUb(mm, c, ask, pipe); break;
    case 3:
      mm.template IterateAll<false>(c, atomic, false, true);
      mm.WaitIterateAll();
      break;
    case 4:
      mm.IterateBatch(c, ask.batch[0], ask.batch[1], false);
      break;
    case 5: {  // k in two halves that add up in L0C
      const auto half = ask.tiling.singleCoreK / 2;
      for (int i = 0; i < 2; ++i) {
        mm.SetSingleShape(-1, -1, half);
        mm.SetTensorA(Tensor<typename MM::SrcAT>(args[0], i * half));
        mm.SetTensorB(Tensor<typename MM::SrcBT>(args[1], i * half * ask.tiling.N));
        mm.Iterate(i > 0);
      }
      mm.GetTensorC(c);
      break;
    }
    case 6: {
      auto workspace = Tensor<C>(static_cast<std::uint8_t *>(args[4]) + (1 << 24));
      mm.SetWorkspace(workspace);
      mm.template Iterate<false>();
      const auto blocks = DivCeil(ask.tiling.singleCoreM, ask.tiling.baseM) *
                          DivCeil(ask.tiling.singleCoreN, ask.tiling.baseN);
      for (int i = 0; i < blocks; ++i) mm.template GetTensorC<false>(c, 0, false);
      break;
    }
    default: break;
  }
  mm.End();
}

template <TPosition P, CubeFormat F, typename T, LayoutMode L = LayoutMode::NONE>
using Type = MatmulType<P, F, T, true, L>;

#define KIND(name, ab, c, bias, format, formatC, layout)                               \
  extern "C" void name(void **args) {                                                  \
    Run<Matmul<Type<TPosition::GM, CubeFormat::format, ab, LayoutMode::layout>,        \
               Type<TPosition::GM, CubeFormat::format, ab, LayoutMode::layout>,        \
               Type<TPosition::GM, CubeFormat::formatC, c, LayoutMode::layout>,        \
               Type<TPosition::GM, CubeFormat::ND, bias>>>(args);                      \
  }

KIND(half_float, half, float, float, ND, ND, NONE)
KIND(half_half, half, half, half, ND, ND, NONE)
KIND(bf16_bf16, bfloat16_t, bfloat16_t, float, ND, ND, NONE)
KIND(float_float, float, float, float, ND, ND, NONE)
KIND(int8_int32, std::int8_t, std::int32_t, std::int32_t, ND, ND, NONE)
KIND(int8_half, std::int8_t, half, std::int32_t, ND, ND, NONE)
KIND(int4_int32, int4b_t, std::int32_t, std::int32_t, ND, ND, NONE)
KIND(half_int8, half, std::int8_t, float, ND, ND, NONE)
KIND(nz_half, half, float, float, NZ, ND, NONE)
KIND(nz_int8, std::int8_t, std::int32_t, std::int32_t, NZ, ND, NONE)
KIND(nd_nz, half, half, float, ND, NZ, NONE)
KIND(normal, half, float, float, ND, ND, NORMAL)
KIND(bsngd, half, float, float, ND, ND, BSNGD)

// A from UB, C to UB: what a fused kernel does.
extern "C" void ub_to_ub(void **args) {
  Ask ask;
  __builtin_memcpy(&ask, args[5], sizeof ask);
  TPipe pipe;
  Matmul<MatmulType<TPosition::VECOUT, CubeFormat::ND, half>,
         MatmulType<TPosition::GM, CubeFormat::ND, half>,
         MatmulType<TPosition::VECIN, CubeFormat::ND, float>> mm;
  REGIST_MATMUL_OBJ(&pipe, static_cast<GM_ADDR>(args[4]), mm, &ask.tiling);
  const std::int32_t m = ask.tiling.M, n = ask.tiling.N, k = ask.tiling.Ka;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> in;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 1, m * k * sizeof(half));
  pipe.InitBuffer(out, 1, m * n * sizeof(float));
  auto a = in.AllocTensor<half>();
  DataCopy(a, Tensor<half>(args[0]), m * k);
  in.EnQue(a);
  a = in.DeQue<half>();
  mm.SetTensorA(a);
  mm.SetTensorB(Tensor<half>(args[1]));
  auto c = out.AllocTensor<float>();
  mm.IterateAll(c);
  in.FreeTensor(a);
  out.EnQue(c);
  c = out.DeQue<float>();
  auto gm = Tensor<float>(args[3]);
  DataCopy(gm, c, m * n);
  out.FreeTensor(c);
  mm.End();
}

// Two objects, each core its own rows by what the host's tiling says, tails by SetTail.
extern "C" void cores(void **args) {
  using A = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using C = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  Ask ask;
  __builtin_memcpy(&ask, args[5], sizeof ask);
  TPipe pipe;
  Matmul<A, A, C> first;
  Matmul<A, A, C, C, CFG_MDL> second;
  const TCubeTiling *__restrict tiling = &ask.tiling;
  REGIST_MATMUL_OBJ(&pipe, static_cast<GM_ADDR>(args[4]), first, tiling, second, &ask.tiling);
  const TCubeTiling &t = ask.tiling;
  const std::int32_t block = GetBlockIdx(), down = DivCeil(t.M, t.singleCoreM);
  const std::int32_t row = block % down * t.singleCoreM, col = block / down * t.singleCoreN;
  const auto work = [&](auto &mm, std::int64_t from) {
    mm.SetTensorA(Tensor<half>(args[0], row * t.Ka));
    mm.SetTensorB(Tensor<half>(args[1], col));
    const std::int32_t rows = t.M - row, cols = t.N - col;
    mm.SetTail(rows < t.singleCoreM ? rows : -1, cols < t.singleCoreN ? cols : -1);
    mm.IterateAll(Tensor<float>(args[3], from + row * t.N + col));
    mm.End();
  };
  work(first, 0);
  work(second, t.M * t.N);
}

// Tiling known when the kernel is compiled.
extern "C" void constant(void **args) {
  using A = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using C = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  static constexpr MatmulShapeParams shape{96, 80, 64, 32, 16, 32};
  static constexpr MatmulConfig config = GetMMConfig<MatmulConfigMode::CONFIG_MDL>(shape);
  static constexpr auto fixed = GetMatmulApiTiling<A, A, C, C>(config);
  TPipe pipe;
  Matmul<A, A, C, C, fixed> mm;
  REGIST_MATMUL_OBJ(&pipe, static_cast<GM_ADDR>(args[4]), mm, (TCubeTiling *)nullptr);
  mm.SetTensorA(Tensor<half>(args[0]));
  mm.SetTensorB(Tensor<half>(args[1]));
  mm.SetBias(Tensor<float>(args[2]));
  mm.IterateAll(Tensor<float>(args[3]));
  mm.End();
}

// Batches in rounds: each is fetched from the object's workspace and copied to C.
extern "C" void rounds(void **args) {
  using A = MatmulType<TPosition::GM, CubeFormat::ND, half, false, LayoutMode::NORMAL>;
  using C = MatmulType<TPosition::GM, CubeFormat::ND, float, false, LayoutMode::NORMAL>;
  static constexpr MatmulConfig config = GetNormalConfig(false, true);
  Ask ask;
  __builtin_memcpy(&ask, args[5], sizeof ask);
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  const std::int32_t size = ask.tiling.M * ask.tiling.N * ask.batch[1];
  pipe.InitBuffer(buffer, size * sizeof(float));
  Matmul<A, A, C, C, config> mm;
  REGIST_MATMUL_OBJ(&pipe, static_cast<GM_ADDR>(args[4]), mm, &ask.tiling);
  auto workspace = Tensor<float>(static_cast<std::uint8_t *>(args[4]) + (1 << 24));
  mm.SetWorkspace(workspace);
  mm.SetTensorA(Tensor<half>(args[0]));
  mm.SetTensorB(Tensor<half>(args[1]));
  mm.IterateNBatch(ask.batch[0], ask.batch[1], ask.batch[1], false);
  auto local = buffer.Get<float>();
  for (int i = 0; i < ask.batch[0]; ++i) {
    auto part = mm.GetBatchTensorC(ask.batch[1], ask.batch[1]);
    DataCopy(local, part, size);
    PipeBarrier<PIPE_ALL>();
    auto out = Tensor<float>(args[3], i * size);
    DataCopy(out, local, size);
    PipeBarrier<PIPE_ALL>();
  }
  mm.End();
}

// The same, read from the workspace without GetBatchTensorC.
extern "C" void rounds_in_workspace(void **args) {
  using A = MatmulType<TPosition::GM, CubeFormat::ND, half, false, LayoutMode::NORMAL>;
  using C = MatmulType<TPosition::GM, CubeFormat::ND, float, false, LayoutMode::NORMAL>;
  static constexpr MatmulConfig config = GetNormalConfig(false, true);
  Ask ask;
  __builtin_memcpy(&ask, args[5], sizeof ask);
  TPipe pipe;
  Matmul<A, A, C, C, config> mm;
  REGIST_MATMUL_OBJ(&pipe, static_cast<GM_ADDR>(args[4]), mm, &ask.tiling);
  auto c = Tensor<float>(args[3]);
  mm.SetWorkspace(c);
  mm.SetTensorA(Tensor<half>(args[0]));
  mm.SetTensorB(Tensor<half>(args[1]));
  mm.IterateNBatch(ask.batch[0], ask.batch[1], ask.batch[1], false);
  mm.End();
}

// One result for each baseK, the parts of a block behind each other.
constexpr MatmulConfig PartsOfK() {
  MatmulConfig config = CFG_MDL;
  config.isPartialOutput = true;
  return config;
}
extern "C" void parts_of_k(void **args) {
  using A = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using C = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  static constexpr MatmulConfig config = PartsOfK();
  Ask ask;
  __builtin_memcpy(&ask, args[5], sizeof ask);
  TPipe pipe;
  Matmul<A, A, C, C, config> mm;
  REGIST_MATMUL_OBJ(&pipe, static_cast<GM_ADDR>(args[4]), mm, &ask.tiling);
  mm.SetTensorA(Tensor<half>(args[0]));
  mm.SetTensorB(Tensor<half>(args[1]));
  mm.SetBias(Tensor<float>(args[2]));
  for (std::int64_t at = 0; mm.Iterate(); at += ask.tiling.baseM * ask.tiling.baseN) {
    mm.GetTensorC(Tensor<float>(args[3], at), 0, true);
  }
  mm.End();
}

template <template <const auto &, typename, typename, typename, typename, typename> class Policy>
void Triangle(void **args) {
  using A = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using C = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  Ask ask;
  __builtin_memcpy(&ask, args[5], sizeof ask);
  TPipe pipe;
  Matmul<A, A, C, C, CFG_NORM, MatmulCallBackFunc<nullptr, nullptr, nullptr>, Policy> mm;
  REGIST_MATMUL_OBJ(&pipe, static_cast<GM_ADDR>(args[4]), mm, &ask.tiling);
  mm.SetTensorA(Tensor<half>(args[0]));
  mm.SetTensorB(Tensor<half>(args[1]));
  auto c = Tensor<float>(args[3]);
  if (ask.way == 0) mm.IterateAll(c);
  else
    while (mm.Iterate()) mm.GetTensorC(c);
  mm.End();
}
extern "C" void upper(void **args) {
  Triangle<AscendC::Impl::Detail::TrianUpperMatmulPolicy>(args);
}
extern "C" void lower(void **args) {
  Triangle<AscendC::Impl::Detail::TrianLowerMatmulPolicy>(args);
}

// Names that published kernels take from inside of the vendor's library.
static_assert(AscendC::DEFAULT_C0_SIZE == 32 && AscendC::Impl::QUEUE_DEPTH == 1);
static_assert(std::is_same_v<AscendC::GetMmDstType<std::int8_t>::Type, std::int32_t>);
static_assert(std::is_same_v<AscendC::GetMmDstType<int4b_t>::Type, std::int32_t>);
static_assert(std::is_same_v<AscendC::GetMmDstType<half>::Type, float>);
