// Kernels of test_compound.py. args: 0 the output, 1.. the inputs.
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
    Meet();
    return Get<T>(i);
  }
  template <typename T>
  void Out(void **args, const LocalTensor<T> &from, int n) {
    Meet();
    GlobalTensor<T> gm;
    gm.SetGlobalBuffer(static_cast<T *>(args[0]), n);
    DataCopy(gm, from, n);
  }
  void Meet() { PipeBarrier<PIPE_ALL>(); }
};

template <typename D, typename S, typename F>
void Two(void **args, int n, F f) {
  Ub ub;
  auto a = ub.In<S>(args, 1, n);
  auto b = ub.In<S>(args, 2, n);
  auto d = ub.Get<D>(0);
  f(d, a, b);
  ub.Out(args, d, n);
}

template <typename D, typename S, typename F>
void One(void **args, int n, int out, F f) {
  Ub ub;
  auto a = ub.In<S>(args, 1, n);
  auto d = ub.Get<D>(0);
  f(ub, d, a);
  ub.Out(args, d, out);
}

#define RELU_CAST(name, op)                                                                  \
  ENTRY(name##_h8) {                                                                         \
    Two<int8_t, half>(args, 256, [](auto d, auto a, auto b) { op(d, a, b, 256); });          \
  }                                                                                          \
  ENTRY(name##_i8) {                                                                         \
    Two<int8_t, int16_t>(args, 256, [](auto d, auto a, auto b) {                             \
      op(d, a, b, uint64_t(128), 2, {1, 1, 1, 4, 8, 8});                                     \
    });                                                                                      \
  }                                                                                          \
  ENTRY(name##_fh) {                                                                         \
    Two<half, float>(args, 256, [](auto d, auto a, auto b) { op(d, a, b, 256); });           \
  }
RELU_CAST(add_relu_cast, AddReluCast)
RELU_CAST(sub_relu_cast, SubReluCast)

ENTRY(mul_cast_i8) {
  Two<int8_t, half>(args, 256, [](auto d, auto a, auto b) { MulCast(d, a, b, 256); });
}
ENTRY(mul_cast_u8) {
  Two<uint8_t, half>(args, 256, [](auto d, auto a, auto b) {
    uint64_t mask[2] = {~0ull, ~0ull};
    MulCast(d, a, b, mask, 2, {1, 1, 1, 4, 8, 8});
  });
}
ENTRY(add_deq_relu) {
  Two<half, int32_t>(args, 256, [](auto d, auto a, auto b) {
    SetDeqScale(half(0.37));
    AddDeqRelu(d, a, b, 256);
  });
}

template <typename D>
void Clear(const LocalTensor<D> &d) {
  Duplicate(d.template ReinterpretCast<int16_t>(), int16_t(0), 256);
}
ENTRY(dequant_lower) {
  One<int8_t, int16_t>(args, 256, 512, [](Ub &, auto d, auto a) {
    Clear(d);
    SetDeqScale(0.5f, -3, true);
    CastDequant<int8_t, int16_t, false, true>(d, a, 256);
  });
}
ENTRY(dequant_upper) {
  One<int8_t, int16_t>(args, 256, 512, [](Ub &, auto d, auto a) {
    Clear(d);
    SetDeqScale(0.5f, -3, true);
    CastDeq<int8_t, int16_t, true, false, false>(d, a, 128, 2, {1, 1, 8, 8});
  });
}
ENTRY(dequant_table) {
  One<uint8_t, int16_t>(args, 256, 512, [](Ub &ub, auto d, auto a) {
    Clear(d);
    float scales[16];
    int16_t offsets[16];
    bool signs[16];
    for (int i = 0; i < 16; ++i) {
      scales[i] = (i + 1) * 0.25f;
      offsets[i] = i;
      signs[i] = false;
    }
    auto table = ub.Get<uint64_t>(5);
    SetDeqScale<uint64_t>(table, VdeqInfo(scales, offsets, signs));
    ub.Meet();
    CastDequant<uint8_t, int16_t>(d, a, 256);
  });
}

ENTRY(int4_to_half) {
  Ub ub;
  auto packed = ub.In<uint8_t>(args, 1, 128).ReinterpretCast<int4b_t>();
  Cast(ub.Get<half>(0), packed, RoundMode::CAST_NONE, 256);
  ub.Out(args, ub.Get<half>(0), 256);
}
ENTRY(half_to_int4) {
  Ub ub;
  auto x = ub.In<half>(args, 1, 256);
  auto packed = ub.Get<int4b_t>(0);
  Cast(packed, x, RoundMode::CAST_RINT, uint64_t(128), 2, {1, 1, 2, 8});
  ub.Meet();
  GlobalTensor<int4b_t> gm;
  gm.SetGlobalBuffer(static_cast<int4b_t *>(args[0]), 256);
  DataCopy(gm, packed, 256);
}

ENTRY(bilinear) {
  Ub ub;
  auto data = ub.In<half>(args, 1, 512);
  auto weights = ub.In<half>(args, 2, 32);
  auto offsets = ub.In<uint32_t>(args, 3, 32);
  auto tmp = ub.Get<uint8_t>(4);
  auto d = ub.Get<half>(0);
  BilinearInterpolation(d, data, offsets, weights, uint64_t(128), 2, false, 1, 128, 2, tmp);
  ub.Out(args, d, 256);
}

// Each in both modes.
#define BOTH(name, D, S, n, ...)                                                        \
  template <bool saturates>                                                             \
  void name(void **args) {                                                              \
    if (saturates) SetSaturationFlag<SaturationMode::FLOAT>(true);                      \
    Two<D, S>(args, n, [](auto d, auto a, auto b) { __VA_ARGS__; });                    \
  }                                                                                     \
  ENTRY(sat_##name) { name<true>(args); }                                               \
  ENTRY(inf_##name) { name<false>(args); }
BOTH(add, half, half, 128, Add(d, a, b, 128))
BOTH(mul, half, half, 128, Mul(d, a, b, 128))
BOTH(max, half, half, 128, Max(d, a, b, 128))
BOTH(add_i16, int16_t, int16_t, 128, Add(d, a, b, 128))
BOTH(mul_i16, int16_t, int16_t, 128, Mul(d, a, b, 128))
BOTH(mul_i32, int32_t, int32_t, 64, Mul(d, a, b, 64))
BOTH(madd, half, half, 128, Duplicate(d, half::FromBits(0xFC00), 128); MulAddDst(d, a, b, 128))

ENTRY(sat_reduce_sum) {
  SetSaturationFlag<SaturationMode::FLOAT>(true);
  One<half, half>(args, 256, 16, [](Ub &ub, auto d, auto a) {
    Duplicate(d, half(0), 16);
    ReduceSum(d, a, ub.Get<half>(4), 256);
  });
}
template <bool saturates>
void Most(void **args) {
  if (saturates) SetCtrlSpr<48, 48>(0);
  One<half, half>(args, 256, 16, [](Ub &ub, auto d, auto a) {
    Duplicate(d, half(0), 16);
    ReduceMax(d, a, ub.Get<half>(4), 256, false);
  });
}
ENTRY(sat_reduce_max) { Most<true>(args); }
ENTRY(inf_reduce_max) { Most<false>(args); }
ENTRY(sat_cast) {
  SetSaturationFlag<SaturationMode::FLOAT>(true);
  One<half, float>(args, 64, 64, [](Ub &, auto d, auto a) { Cast(d, a, RoundMode::CAST_RINT, 64); });
}
ENTRY(cast_low) {
  SetSaturationFlag<SaturationMode::CAST>(false);
  One<int16_t, float>(args, 64, 64,
                      [](Ub &, auto d, auto a) { Cast(d, a, RoundMode::CAST_TRUNC, 64); });
}
ENTRY(sat_duplicate) {
  SetSaturationFlag<SaturationMode::FLOAT>(true);
  Ub ub;
  Duplicate(ub.Get<half>(1), half::FromBits(0x7C00), 128);
  Copy(ub.Get<half>(0), ub.Get<half>(1), uint64_t(128), 1, {1, 1, 8, 8});
  ub.Out(args, ub.Get<half>(0), 128);
}
ENTRY(ctrl) {
  Ub ub;
  auto seen = ub.Get<int32_t>(0);
  Duplicate(seen, 0, 8);
  ub.Meet();
  seen.SetValue(0, GetCtrlSpr<48, 48>());
  SetCtrlSpr<48, 48>(0);
  seen.SetValue(1, GetCtrlSpr<48, 48>());
  seen.SetValue(2, GetSaturationFlag<SaturationMode::FLOAT>());
  SetSaturationFlag<SaturationMode::FLOAT>(false);
  seen.SetValue(3, GetSaturationFlag<SaturationMode::FLOAT>());
  seen.SetValue(4, GetCtrlSpr<48, 48>());
  seen.SetValue(5, GetSaturationFlag<SaturationMode::CAST>());
  ub.Out(args, seen, 8);
}
