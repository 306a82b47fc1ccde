// Kernels of test_breadth.py. args: 0 the output, 1.. the inputs.
#include "kernel_operator.h"

using namespace AscendC;

#define ENTRY(name) extern "C" void name(void **args)

struct Ub {
  TPipe pipe;
  TBuf<TPosition::VECCALC> bufs[6];

  Ub() {
    for (auto &buf : bufs) pipe.InitBuffer(buf, 8192);
  }
  template <typename T>
  LocalTensor<T> Get(int i) {
    return bufs[i].Get<T>();
  }
  template <typename T>
  LocalTensor<T> In(void **args, int i, int n) {
    GlobalTensor<T> gm;
    gm.SetGlobalBuffer(static_cast<T *>(args[i]), n);
    DataCopy(Get<T>(i), gm, n);
    PipeBarrier<PIPE_ALL>();
    return Get<T>(i);
  }
  template <typename T>
  void Out(void **args, const LocalTensor<T> &from, int n) {
    PipeBarrier<PIPE_ALL>();
    GlobalTensor<T> gm;
    gm.SetGlobalBuffer(static_cast<T *>(args[0]), n);
    DataCopy(gm, from, n);
    PipeBarrier<PIPE_ALL>();
  }
};

// 64 numbers to tell the test.
struct Answers {
  Ub ub;
  LocalTensor<float> list;
  int next = 0;
  void **args;

  explicit Answers(void **given) : args(given) {
    list = ub.Get<float>(0);
    Duplicate(list, 0.0f, 64);
    PipeBarrier<PIPE_ALL>();
  }
  void Say(double value) { list.SetValue(next++, static_cast<float>(value)); }
  ~Answers() { ub.Out(args, list, 64); }
};

ENTRY(relu_sums) {
  Ub ub;
  auto a = ub.In<int16_t>(args, 1, 128);
  auto b = ub.In<int16_t>(args, 2, 128);
  AddRelu(ub.Get<int16_t>(0), a, b, 128);
  SubRelu(ub.Get<int16_t>(0)[128], a, b, uint64_t(128), 1, {1, 1, 1, 8, 8, 8});
  ub.Out(args, ub.Get<int16_t>(0), 256);
}
ENTRY(gatherb) {
  Ub ub;
  auto x = ub.In<uint32_t>(args, 1, 64);
  auto offsets = ub.In<uint32_t>(args, 2, 8);
  Gatherb(ub.Get<uint32_t>(0), x, offsets, 1, {1, 8});
  ub.Out(args, ub.Get<uint32_t>(0), 64);
}
ENTRY(compare_register) {
  Ub ub;
  auto a = ub.In<float>(args, 1, 64);
  auto b = ub.In<float>(args, 2, 64);
  auto kept = ub.Get<uint8_t>(3);
  Compare(a, b, CMPMODE::LT, uint64_t(64), {1, 1, 1, 8, 8, 8});
  PipeBarrier<PIPE_ALL>();
  GetCmpMask(kept);
  PipeBarrier<PIPE_ALL>();
  Compare(a, a, CMPMODE::LT, uint64_t(64), {1, 1, 1, 8, 8, 8});
  PipeBarrier<PIPE_ALL>();
  SetCmpMask(kept);
  PipeBarrier<PIPE_ALL>();
  Select<float, SELMODE::VSEL_CMPMASK_SPR>(ub.Get<float>(0), a, b, 1, {1, 1, 1, 8, 8, 8});
  ub.Out(args, ub.Get<float>(0), 64);
}
ENTRY(registers) {
  Answers out(args);
  SetCtrlSpr<48, 48>(1);
  out.Say(GetCtrlSpr<48, 48>());
  ResetCtrlSpr<48, 48>();
  out.Say(GetCtrlSpr<48, 48>());
  SetMaskCount();
  out.Say(GetCtrlSpr<56, 56>());
  SetMaskNorm();
  out.Say(GetCtrlSpr<56, 56>());
  set_ctrl(sbitset1(get_ctrl(), 48));
  out.Say(GetSaturationFlag<SaturationMode::FLOAT>());
}

// A tensor's address as the C-style names take it.
template <typename T>
__ubuf__ T *At(const LocalTensor<T> &tensor) {
  return (__ubuf__ T *)tensor.GetPhyAddr();
}

// dst holds four rows of 64 floats: each computed by C-style names, then by their class names.
ENTRY(c_style) {
  Ub ub;
  auto a = ub.In<float>(args, 1, 64);
  auto b = ub.In<float>(args, 2, 64);
  auto d = ub.Get<float>(0);
  auto t = ub.Get<float>(3);
  set_mask_norm();
  set_vector_mask(0, ~0ull);
  vadd(At(d), At(a), At(b), 1, 1, 1, 1, 8, 8, 8);
  pipe_barrier(PIPE_V);
  vmuls(At(d), At(d), 2.0f, 1, 1, 1, 8, 8);
  pipe_barrier(PIPE_V);
  vabs(At(d), At(d), 1, 1, 1, 8, 8);
  Add(d[64], a, b, 64);
  Muls(d[64], d[64], 2.0f, 64);
  Abs(d[64], d[64], 64);
  set_vector_mask(0, ~0ull);
  auto h = ub.Get<half>(4);
  vconv_f322f16a(At(h), At(a), 1, 1, 1, 4, 8);
  pipe_barrier(PIPE_V);
  vconv_f162f32(At(d[128]), At(h), 1, 1, 1, 8, 4);
  Cast(h, a, RoundMode::CAST_ROUND, 64);
  Cast(d[192], h, RoundMode::CAST_NONE, 64);
  set_vector_mask(0, ~0ull);
  vcgmax(At(d[256]), At(a), 1, 1, 1, 8);
  vcmax(At(d[264]), At(a), 1, 1, 1, 8);
  vector_dup(At(d[272]), 7.0f, 1, 1, 1, 8, 8);
  vcmpv_lt(At(ub.Get<uint8_t>(5)), At(a), At(b), 1, 1, 1, 1, 8, 8, 8);
  pipe_barrier(PIPE_ALL);
  set_cmpmask(At(ub.Get<uint8_t>(5)));
  pipe_barrier(PIPE_ALL);
  vsel(At(d[336]), At(a), At(b), 1, 1, 1, 1, 8, 8, 8);
  DuplicateImpl<float>(At(d[400]), 3, 64);
  ub.Out(args, d, 464);
}
// 16 rows of 16 halves through both transpositions come back as they were.
ENTRY(c_transpose) {
  Ub ub;
  auto x = ub.In<uint16_t>(args, 1, 256);
  auto t = ub.Get<uint16_t>(3);
  auto d = ub.Get<uint16_t>(0);
  vtranspose(At(t), At(x));
  pipe_barrier(PIPE_V);
  uint64_t to[16], from[16];
  for (int i = 0; i < 16; ++i) {
    to[i] = (uint64_t)(At(d) + i * 16);
    from[i] = (uint64_t)(At(t) + i * 16);
  }
  set_va_reg_sb(VA0, to);
  set_va_reg_sb(VA1, to + 8);
  set_va_reg_sb(VA2, from);
  set_va_reg_sb(VA3, from + 8);
  scatter_vnchwconv_b16(VA0, VA2, 1, 0, 0);
  ub.Out(args, d, 256);
}
ENTRY(c_copies) {
  Ub ub;
  auto *in = static_cast<float *>(args[1]);
  auto *out = static_cast<float *>(args[0]);
  auto x = ub.Get<float>(1);
  auto y = ub.Get<float>(2);
  copy_gm_to_ubuf(At(x), in, 0, 2, 2, 2, 0);
  pipe_barrier(PIPE_ALL);
  copy_ubuf_to_ubuf(At(y), At(x), 0, 1, 4, 0, 0);
  pipe_barrier(PIPE_ALL);
  copy_ubuf_to_gm(out, At(y), 0, 1, 4, 0, 0);
  copy_gm_to_ubuf_align_b32(At(x), in, 0, 2, 20, 0, 0, 12, 0);
  pipe_barrier(PIPE_ALL);
  copy_ubuf_to_gm_align_b32(out + 32, At(x), 0, 2, 20, 0, 0, 0, 4);
  DataCopyUB2GMImpl(out + 48, At(y), {1, 2, 0, 0});
}
ENTRY(atomics) {
  Ub ub;
  auto x = ub.In<float>(args, 1, 64);
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[0]), 64);
  uint16_t type = 9, op = 9;
  SetStoreAtomicConfig<AtomicDtype::ATOMIC_F32, AtomicOp::ATOMIC_MIN>();
  GetStoreAtomicConfig(type, op);
  ASSERT(type == 1 && op == 2);
  DataCopy(gm, x, 16);
  SetAtomicNone();
  set_atomic_f32();
  set_atomic_add();
  DataCopy(gm[16], x[16], 16);
  set_atomic_none();
  SetAtomicAdd<half>();
  SetAtomicType<float>();
  DataCopy(gm[32], x[32], 16);
  SetAtomicNone();
  SetAtomicMin<float>();
  DataCopy(gm[48], x[48], 16);
  DisableDmaAtomic();
}
// Names of constants and traits that published kernels use.
static_assert(K_MAX_DIM == 8);
static_assert(Std::is_same_v<Std::remove_const_t<const int>, Std::remove_pointer_t<int *>>);
constexpr CumSumConfig kLines{true, false, true, CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};
static_assert(kLines.isLastAxis);
constexpr FixpipeConfig kToUb{CO2Layout::NZ, true};
static_assert(kToUb.isToUB && !CFG_NZ.isToUB);
ENTRY(pad_value) {
  Ub ub;
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[1]), 64);
  SetPadValue(5.0f);
  DataCopyPad(ub.Get<float>(0), gm, {1, 12, 0, 0, 0}, DataCopyPadExtParams<float>());
  ub.Out(args, ub.Get<float>(0), 8);
}
// Two matrices of 20 rows and 32 columns, one of fractals of 16 columns after the other.
ENTRY(fractals) {
  Ub ub;
  auto x = ub.In<half>(args, 1, 1536);
  GlobalTensor<half> gm;
  gm.SetGlobalBuffer(static_cast<half *>(args[0]), 2 * 20 * 40);
  DataCopy(gm, x, Nz2NdParamsFull(2, 20, 32, 3, 20, 40, 800));
}
ENTRY(caches) {
  Answers out(args);
  GlobalTensor<uint64_t> gm;
  gm.SetGlobalBuffer(static_cast<uint64_t *>(args[1]), 8);
  DataCachePreload(gm, 0);
  DataCacheCleanAndInvalid<uint64_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(gm);
  ICachePreLoad(2);
  out.Say(GetICachePreloadStatus());
}
ENTRY(queues) {
  Answers out(args);
  TQue<TPosition::VECIN, 2> queue;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> both;
  out.ub.pipe.InitBuffer(queue, 2, 256);
  out.ub.pipe.InitBuffer(both, 1, 256);
  out.Say(GetTPipePtr() == &out.ub.pipe);
  auto x = queue.AllocTensor<float>();
  out.Say(queue.HasIdleBuffer());
  auto y = queue.AllocTensor<float>();
  out.Say(queue.HasIdleBuffer());
  out.Say(queue.HasTensorInQue());
  Duplicate(x, 1.0f, 64);
  Duplicate(y, 1.0f, 64);
  queue.EnQue(x);
  out.Say(queue.GetTensorCountInQue());
  out.Say(queue.VacantInQue());
  queue.EnQue(y);
  out.Say(queue.VacantInQue());
  x = queue.DeQue<float>();
  y = queue.DeQue<float>();
  queue.FreeTensor(x);
  queue.FreeTensor(y);
  queue.FreeAllEvent();
  auto z = both.AllocTensor<float>();
  Duplicate(z, 2.0f, 64);
  both.EnQue<TPosition::VECIN, TPosition::VECOUT>(z);
  z = both.DeQue<TPosition::VECIN, TPosition::VECOUT, float>();
  out.Say(z.GetPosition() == static_cast<int>(TPosition::VECOUT));
  both.FreeTensor(z);
  const TEventID id = out.ub.pipe.AllocEventID<HardEvent::V_S>();
  SetFlag<HardEvent::V_S>(id);
  WaitFlag<HardEvent::V_S>(id);
  out.ub.pipe.ReleaseEventID<HardEvent::V_S>(id);
}
// Pieces one after the other, as a kernel's own pool gives them out.
class OwnPool {
 public:
  OwnPool() { Init(); }
  template <class T>
  bool InitBuffer(T &queue, uint8_t num, uint32_t len) {
    auto handle = GetBufHandle(GetCurBufSize());
    const uint32_t from = GetCurAddr();
    queue.InitStartBufHandle(handle, num, len);
    for (uint32_t i = 0; i < num; ++i) queue.InitBufHandle(this, i, handle, from + i * len, len);
    SetCurAddr(from + num * len);
    SetCurBufSize(GetCurBufSize() + num);
    return true;
  }
  template <TPosition position>
  bool InitBuffer(TBuf<position> &buffer, uint32_t len) {
    auto handle = GetBufHandle(GetCurBufSize());
    buffer.InitStartBufHandle(handle, 1, len);
    buffer.InitBufHandle(this, 0, handle, GetCurAddr(), len);
    SetCurAddr(GetCurAddr() + len);
    SetCurBufSize(GetCurBufSize() + 1);
    return true;
  }
  EXTERN_IMPL_BUFPOOL(OwnPool, TPosition::VECCALC, 4);
};
ENTRY(own_pool) {
  TPipe pipe;
  OwnPool pool;
  pipe.InitBufPool(pool, 1024);
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  TBuf<TPosition::VECCALC> seven;
  pool.InitBuffer(in, 2, 256);
  pool.InitBuffer(out, 1, 256);
  pool.InitBuffer(seven, 256);
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[0]), 64);
  auto x = in.AllocTensor<float>();
  DataCopy(x, gm, 64);
  in.EnQue(x);
  x = in.DeQue<float>();
  auto y = out.AllocTensor<float>();
  Duplicate(seven.Get<float>(), 7.0f, 64);
  PipeBarrier<PIPE_V>();
  Add(y, x, seven.Get<float>(), 64);
  out.EnQue(y);
  in.FreeTensor(x);
  y = out.DeQue<float>();
  DataCopy(gm, y, 64);
  out.FreeTensor(y);
  pool.Reset();
  pipe.Reset();
}
ENTRY(pool_again) {  // the second round needs no InitBuffer, and its copy waits for the first
  TPipe pipe;
  TBufPool<TPosition::VECCALC> pool;
  pipe.InitBufPool(pool, 512);
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  pool.InitBuffer(in, 1, 256);
  pool.InitBuffer(out, 1, 256);
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[0]), 64);
  for (int round = 0; round < 2; ++round) {
    auto x = in.AllocTensor<float>();
    DataCopy(x, gm, 64);
    in.EnQue(x);
    x = in.DeQue<float>();
    auto y = out.AllocTensor<float>();
    Adds(y, x, round == 0 ? 3.0f : 4.0f, 64);
    out.EnQue(y);
    in.FreeTensor(x);
    y = out.DeQue<float>();
    DataCopy(gm, y, 64);
    out.FreeTensor(y);
    pool.Reset();
    PipeBarrier<PIPE_ALL>();
  }
}
ENTRY(pools) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> result;
  pipe.InitBuffer(result, 256);
  TBufPool<TPosition::VECCALC> whole, first, second;
  pipe.InitBufPool(whole, 131072);
  whole.InitBufPool(first, 65536);
  whole.InitBufPool(second, 65536, first);
  TBuf<TPosition::VECCALC> a, b;
  first.InitBuffer(a, 32768);
  auto x = a.Get<float>();
  Duplicate(x, 3.0f, 64);
  first.Reset();
  second.InitBuffer(b, 65536);
  auto y = b.Get<float>();
  Muls(y, y, 2.0f, 64);  // what the first pool left there
  TQue<TPosition::VECIN, 1> queue;
  whole.InitBuffer(queue, 1, 32768);
  auto z = queue.AllocTensor<float>();
  Duplicate(z, 1.0f, 64);
  Add(result.Get<float>(), y, z, 64);
  queue.FreeTensor(z);
  PipeBarrier<PIPE_ALL>();
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[0]), 64);
  DataCopy(gm, result.Get<float>(), 64);
}
ENTRY(spill) {
  Ub ub;
  auto x = ub.In<float>(args, 1, 64);
  GlobalTensor<float> room;
  room.SetGlobalBuffer(static_cast<float *>(args[2]), 128);
  ub.pipe.InitSpmBuffer(room, 512);
  ub.pipe.WriteSpmBuffer(x, 64);
  ub.pipe.WriteSpmBuffer(x, {1, 8, 0, 0}, 256);
  PipeBarrier<PIPE_ALL>();
  ub.pipe.ReadSpmBuffer(ub.Get<float>(0), 64, 256);
  ub.Out(args, ub.Get<float>(0), 64);
}
ENTRY(placed) {
  InitSocState();
  LocalMemAllocator<> ub;
  auto x = ub.Alloc<float, 60>();
  auto y = ub.Alloc<TPosition::VECOUT, float>(64);
  auto z = ub.Alloc<int4b_t>(64);
  ASSERT(ub.GetCurAddr() == 256 + 256 + 32);
  ASSERT(z.GetSize() == 64 && z.GetLength() == 32);
  LocalTensor<float> same(TPosition::VECCALC, 256, 64);
  Duplicate(y, 4.0f, 64);
  Adds(same, same, 1.0f, 64);
  PipeBarrier<PIPE_ALL>();
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[0]), 64);
  DataCopy(gm, y, 64);
  PipeBarrier<PIPE_ALL>();
}
ENTRY(library) {
  Answers out(args);
  auto [a, b] = Std::make_tuple(1, 2.5f);
  out.Say(a + b);
  out.Say(Std::max(3, 7u));
  out.Say(Std::min(3.5f, 1));
  out.Say(Std::is_same<int, int32_t>::value && !IsSameType<int, float>::value);
  out.Say(Std::tuple_size<Std::tuple<int, float, half>>::value);
  out.Say(sizeof(typename Conditional<true, half, float>::type));
  out.Say(DivCeil(9, 4));
  out.Say(CeilDivision(8, 4));
  out.Say(AlignUp(33, 32));
  out.Say(Std::Int<5>::value);
}
ENTRY(lists) {
  Answers out(args);
  ListTensorDesc list(args[1]);
  out.Say(list.GetSize());
  TensorDesc<float> desc;
  list.GetDesc(desc, 1);
  out.Say(desc.GetDim());
  out.Say(desc.GetShape(0));
  out.Say(desc.GetShape(1));
  out.Say(desc.GetDataPtr() == list.GetDataPtr<float>(1));
}
ENTRY(shapes) {
  Answers out(args);
  const uint32_t axes[3] = {2, 3, 5};
  ShapeInfo shape(3, axes, DataFormat::ND);
  out.Say(GetShapeSize(shape));
  out.list.SetShapeInfo(shape);
  out.Say(out.list.GetShapeInfo().shape[2]);
  out.Say(shape.originalShape[1]);
}
ENTRY(bits) {
  Answers out(args);
  out.Say(ScalarGetCountOfValue<1>(0xF0F));
  out.Say(ScalarGetCountOfValue<0>(0xF0F));
  out.Say(ScalarCountLeadingZero(1));
  out.Say(ScalarCountLeadingZero(0));
  out.Say(CountBitsCntSameAsSignBit(1));
  out.Say(CountBitsCntSameAsSignBit(-1));
  out.Say(ScalarGetSFFValue<1>(8));
  out.Say(ScalarGetSFFValue<0>(7));
  out.Say(ScalarGetSFFValue<1>(0));
}
ENTRY(casts) {
  Answers out(args);
  out.Say(ScalarCast<float, int32_t, RoundMode::CAST_ROUND>(2.5f));
  out.Say(ScalarCast<float, int32_t, RoundMode::CAST_RINT>(2.5f));
  out.Say(Cast<float, int32_t, RoundMode::CAST_FLOOR>(-2.5f));
  out.Say(Cast<float, int32_t, RoundMode::CAST_CEIL>(-2.5f));
  out.Say(ScalarCast<float, half, RoundMode::CAST_ODD>(1.0001f).bits);
  out.Say(ScalarCast<float, half, RoundMode::CAST_ODD>(1.5f).bits);
  out.Say(ToFloat(ToBfloat16(3.0f)));
  out.Say(ScalarCast<float, int32_t, RoundMode::CAST_RINT>(3e9f));
}
ENTRY(past_cache) {
  Answers out(args);
  auto *words = static_cast<int32_t *>(args[1]);
  out.Say(ReadGmByPassDCache(words));
  WriteGmByPassDCache(words + 1, int32_t(77));
  out.Say(ReadGmByPassDCache(words + 1));
}
ENTRY(system_variables) {
  Answers out(args);
  uint32_t version = 0;
  GetArchVersion(version);
  out.Say(version);
  const int64_t first = GetSystemCycle();
  PipeBarrier<PIPE_ALL>();
  out.Say(GetSystemCycle() > first && GetProgramCounter() >= first);
  out.Say(GetDataBlockSizeInBytes());
  CheckLocalMemoryIA({0, 0, 1, true, true, true, true, true, true, true});
}
ENTRY(assertions) {
  Answers out(args);
  int seven = 7 ASSERT(seven != 8 && "goes on with an expression");
  ASSERT(seven == 7) out.Say(seven);
  if (seven == 8) ASSERT(false);
  assert(seven == 7, "with a number %d", seven);
  ascendc_assert(seven < 8);
  ASSERT_MSG(seven == 7, "with a number %d", seven);
  if (seven == 7)
    ascendc_assert(true);
  else
    seven = 0;
  for (int i = 0; i < 2; ++i) ASSERT(i < 2);
  out.Say(seven);
}
ENTRY(fails) {
  ASSERT(args == nullptr && "never");
}
ENTRY(trapped) { Trap(); }
ENTRY(prints) {
  Answers out(args);
  auto x = out.ub.Get<half>(3);
  Duplicate(x, half(1.5), 128);
  PipeBarrier<PIPE_ALL>();
  AscendC::printf("one %d and %f\n", 1, half(2.5));
  PRINTF("two %s\n", "words");
  DumpTensor(x, 11, 4);
  const uint32_t axes[2] = {2, 2};
  DumpTensor(x, 12, 4, ShapeInfo(2, axes));
  GlobalTensor<int32_t> gm;
  gm.SetGlobalBuffer(static_cast<int32_t *>(args[1]), 8);
  DumpTensor(gm, 13, 3);
  DumpAccChkPoint(gm, 14, 1, 2);
  asc_dump_ubuf(At(x), 15, 2);
  asc_dump(gm.GetPhyAddr(3), 16, 2);
}
ENTRY(marks) {
  Answers out(args);
  TRACE_START(1);
  out.Say(1);
  TRACE_STOP(1);
  MetricsProfStart();
  MetricsProfStop();
  PrintTimeStamp(3);
}
ENTRY(new_reductions) {
  Ub ub;
  auto x = ub.In<float>(args, 1, 64);
  auto d = ub.Get<float>(0);
  Duplicate(d, 0.0f, 64);
  ReduceRepeat<ReduceMode::REDUCE_SUM>(d, x, 64, 1, 1, 1, 8);
  ReduceDataBlock<ReduceMode::REDUCE_MAX>(d[8], x, 1, 64, 1, 1, 8);
  ReducePairElem(d[16], x, 1, 64, 1, 1, 8);
  ub.Out(args, d, 64);
}
ENTRY(newest_reductions) {  // mask, then repeats
  Ub ub;
  auto x = ub.In<float>(args, 1, 64);
  auto d = ub.Get<float>(0);
  Duplicate(d, 0.0f, 64);
  ReduceRepeat<ReduceType::SUM, float>(d, x, 64, 1, 1, 1, 8);
  ReduceDataBlock<ReduceType::MAX, float>(d[8], x, 64, 1, 1, 1, 8);
  ReducePairElem<ReduceType::SUM, float>(d[16], x, 64, 1, 1, 1, 8);
  ub.Out(args, d, 64);
}
// What is seldom used: views into other tensors, tags, places of memories, the event of a pipe.
ENTRY(seldom) {
  Answers out(args);
  LocalTensor<float> x = out.ub.Get<float>(1);
  for (int i = 0; i < 64; ++i) x.SetValue(i, float(i));
  LocalTensor<float> y;
  y.SetAddrWithOffset(x, 16);
  out.Say(y.GetValue(0));
  y.SetBufferLen(8);
  out.Say(y.GetSize());
  y.SetUserTag(7);
  out.Say(y.GetUserTag());
  out.Say(out.ub.bufs[1].GetWithOffset<float>(8, 128).GetValue(1));
  TPipe *pipe = GetTPipePtr();
  const auto base = pipe->GetBaseAddr(static_cast<int8_t>(TPosition::VECIN));
  out.Say(x.GetPhyAddr() - base);
  out.Say(x.GetPhyAddr(3) - x.GetPhyAddr());
  auto h = x.ReinterpretCast<half>();
  out.Say(-((float)h(2 * 2 + 1)));
  out.Say(pipe->GetAbsAddr<TPosition::VECIN, float>(8192 + 4 * 5, 32).GetValue(0));
  const event_t id = static_cast<event_t>(pipe->FetchEventID(HardEvent::V_S));
  SetFlag<HardEvent::V_S>(id);
  WaitFlag<HardEvent::V_S>(id);
  out.Say(id >= 0 && id < 8);
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[0]), 64);
  gm.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
  DataCopy(gm, x, 64);
}
template <typename T, typename Std::enable_if<Std::is_base_of<int, T>::value, int>::type = 0>
constexpr int Kind() { return 1; }
template <typename T, typename Std::enable_if<Std::is_convertible<T, double>::value, int>::type = 0>
constexpr int Kind() { return 2; }
template <size_t... I>
constexpr size_t Total(Std::index_sequence<I...>) { return (I + ... + 0); }
ENTRY(seldom_library) {
  Answers out(args);
  int a = 0;
  float b = 0;
  Std::tie(a, b) = Std::make_tuple(4, 2.5f);
  out.Say(a + b);
  out.Say(Kind<float>());
  out.Say(sizeof(Std::conditional<true, int8_t, int32_t>::type));
  out.Say(Std::integral_constant<int, 6>::value);
  out.Say(Total(Std::make_index_sequence<4>()));
  out.Say(sizeof(Std::tuple_element<1, Std::tuple<int8_t, int16_t>>::type));
}
ENTRY(gammas) {
  Ub ub;
  auto x = ub.In<float>(args, 1, 64);
  auto d = ub.Get<float>(0);
  Frac(d, x, 64);
  Lgamma(d[64], x, 64);
  Digamma(d[128], x, 64);
  ub.Out(args, d, 192);
}
