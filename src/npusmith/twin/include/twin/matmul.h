// The Matmul object: a thin shell around the runtime's. On the vector cores of a kernel of both
// kinds it stands for the cube core that serves it; the core that computes is told by the template.
#pragma once

#include "twin/matmulrun.h"
#include "twin/tensor.h"

namespace twin {

template <typename T>
inline constexpr bool kMatmulInput = kOneOf<T, half, bfloat16_t, float, std::int8_t, int4b_t>;
template <typename T>
inline constexpr bool kMatmulOutput =
    kOneOf<T, half, bfloat16_t, float, std::int32_t, std::int8_t, std::uint8_t>;

template <typename Type>
constexpr MatmulSide SideOf() {
  return {TagOf<typename Type::T>(), Type::pos, Type::format, Type::isTrans, Type::layout,
          Type::ibShare};
}

template <typename T>
MatmulPlace PlaceAt(const AscendC::GlobalTensor<T> &tensor) {
  return {false, tensor.gm(), {}};
}
template <typename T>
MatmulPlace PlaceAt(const AscendC::LocalTensor<T> &tensor) {
  return {true, {}, tensor.view()};
}

// Everything that the documented classes have in common; `client`: served by a cube core.
template <bool client, class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE,
          const auto &MM_CFG, class MM_CB, MatmulTriangle triangle>
class MatmulObject {
 public:
  using AType = A_TYPE;
  using BType = B_TYPE;
  using CType = C_TYPE;
  using BiasType = BIAS_TYPE;
  using SrcT = typename A_TYPE::T;
  using SrcAT = typename A_TYPE::T;
  using SrcBT = typename B_TYPE::T;
  using DstT = typename C_TYPE::T;
  using BiasT = typename BIAS_TYPE::T;
  template <typename T>
  using Global = AscendC::GlobalTensor<T>;
  template <typename T>
  using Local = AscendC::LocalTensor<T>;

  static_assert(kMatmulInput<SrcAT> && std::is_same_v<SrcAT, SrcBT>,
                "A and B of a Matmul on dav-2201 are both half, bfloat16_t, float, int8_t or "
                "int4b_t");
  static_assert(kMatmulOutput<DstT>,
                "C of a Matmul on dav-2201 is half, bfloat16_t, float, int32_t, int8_t or uint8_t");
  static_assert(kOneOf<SrcAT, std::int8_t, int4b_t> || !std::is_same_v<DstT, std::int32_t>,
                "C of a Matmul is int32_t only when A and B are int8_t or int4b_t");
  static_assert(!std::is_same_v<SrcAT, std::int8_t> ||
                    kOneOf<DstT, std::int32_t, half, std::int8_t, std::uint8_t>,
                "C of a Matmul of int8_t is int32_t, half, int8_t or uint8_t");
  static_assert(!std::is_same_v<SrcAT, int4b_t> || kOneOf<DstT, std::int32_t, half>,
                "C of a Matmul of int4b_t is int32_t or half");

  static constexpr MatmulConfig kConfig = ToMatmulConfig(MM_CFG);
  static constexpr bool kCopies = MM_CB::copiesA || MM_CB::copiesB;
  static_assert(!MM_CB::copiesOut, "the twin does not model DataCopyOut of MatmulCallBackFunc");
  static_assert(!A_TYPE::sparse && !C_TYPE::sparse && !BIAS_TYPE::sparse,
                "only B of a Matmul can be sparse");
  static_assert(!B_TYPE::sparse ||
                    (std::is_same_v<SrcBT, std::int8_t> && std::is_same_v<DstT, std::int32_t>),
                "a Matmul with sparse B takes int8_t into int32_t");
  // In the double master mode both kinds of core run the kernel and the cube core computes.
  static constexpr bool kServed = client && !kConfig.enableMixDualMaster;
  static constexpr bool kOnCube = AscendC::g_coreType == AscendC::AIC;

  static_assert(!kCopies || !kServed,
                "the twin models MatmulCallBackFunc of a cube core's object only");

  MatmulObject() : handle_(Traits()) {}

  void Init(const TCubeTiling *tiling, void * = nullptr, Site site = Here()) {
    const TCubeTiling empty{};
    InitMatmul({"Matmul::Init", site}, *handle_,
               Merged(MM_CFG, tiling == nullptr ? empty : *tiling), tiling != nullptr);
  }

  void SetOrgShape(int orgM, int orgN, int orgK, Site site = Here()) {
    SetMatmulOrg({"SetOrgShape", site}, *handle_, orgM, orgN, orgK, orgK, 0);
  }
  void SetOrgShape(int orgM, int orgN, int orgKa, int orgKb, int orgKc = 0, Site site = Here()) {
    SetMatmulOrg({"SetOrgShape", site}, *handle_, orgM, orgN, orgKa, orgKb, orgKc);
  }
  void SetSingleShape(int singleM, int singleN, int singleK, Site site = Here()) {
    SetMatmulSingle({"SetSingleShape", site}, *handle_, singleM, singleN, singleK);
  }
  void SetTail(int tailM = -1, int tailN = -1, int tailK = -1, Site site = Here()) {
    SetMatmulSingle({"SetTail", site}, *handle_, tailM, tailN, tailK);
  }

  void SetTensorA(const Global<SrcAT> &gm, bool isTransposeA = false, Site site = Here()) {
    Set("SetTensorA", site, MatmulSlot::kA, PlaceAt(gm), isTransposeA);
  }
  void SetTensorA(const Local<SrcAT> &leftMatrix, bool isTransposeA = false, Site site = Here()) {
    Set("SetTensorA", site, MatmulSlot::kA, PlaceAt(leftMatrix), isTransposeA);
  }
  void SetTensorA(SrcAT aScalar, Site site = Here()) {
    SetMatmulScalar({"SetTensorA", site}, *handle_, MatmulSlot::kA, Number(aScalar));
  }
  void SetTensorAWithCopy(const Global<SrcAT> &gm, const Local<SrcAT> &leftMatrix,
                          bool isTransposeA = false, Site site = Here()) {
    Set("SetTensorAWithCopy", site, MatmulSlot::kA, PlaceAt(gm), isTransposeA);
  }
  void SetTensorB(const Global<SrcBT> &gm, bool isTransposeB = false, Site site = Here()) {
    Set("SetTensorB", site, MatmulSlot::kB, PlaceAt(gm), isTransposeB);
  }
  void SetTensorB(const Local<SrcBT> &rightMatrix, bool isTransposeB = false, Site site = Here()) {
    Set("SetTensorB", site, MatmulSlot::kB, PlaceAt(rightMatrix), isTransposeB);
  }
  void SetTensorB(SrcBT bScalar, Site site = Here()) {
    SetMatmulScalar({"SetTensorB", site}, *handle_, MatmulSlot::kB, Number(bScalar));
  }
  void SetTensorBWithCopy(const Global<SrcBT> &gm, const Local<SrcBT> &rightMatrix,
                          bool isTransposeB = false, Site site = Here()) {
    Set("SetTensorBWithCopy", site, MatmulSlot::kB, PlaceAt(gm), isTransposeB);
  }
  void SetBias(const Global<BiasT> &biasGlobal, Site site = Here()) {
    Set("SetBias", site, MatmulSlot::kBias, PlaceAt(biasGlobal), false);
  }
  void SetBias(const Local<BiasT> &inputBias, Site site = Here()) {
    Set("SetBias", site, MatmulSlot::kBias, PlaceAt(inputBias), false);
  }
  void SetSparseIndex(const Global<std::uint8_t> &indexGlobal, Site site = Here()) {
    static_assert(B_TYPE::sparse && !kServed && kConfig.doMultiDataLoad,
                  "SetSparseIndex needs SparseMatmulType for B, a cube core's object and MDL");
    SetMatmulIndex({"SetSparseIndex", site}, *handle_, indexGlobal.gm());
  }
  void DisableBias(Site site = Here()) { ClearMatmulBias({"DisableBias", site}, *handle_); }
  void ClearBias(Site site = Here()) { ClearMatmulBias({"ClearBias", site}, *handle_); }

  // Sizes are bytes for a tensor of bytes, elements otherwise, as GlobalTensor counts them.
  template <class T>
  void SetWorkspace(Global<T> &addr, Site site = Here()) {
    SetMatmulWorkspace({"SetWorkspace", site}, *handle_, addr.gm());
  }
  template <class T>
  void SetWorkspace(__gm__ const T *addr, int size, Site site = Here()) {
    auto *base = const_cast<std::uint8_t *>(reinterpret_cast<const std::uint8_t *>(addr));
    SetMatmulWorkspace({"SetWorkspace", site}, *handle_,
                       {base, static_cast<std::int64_t>(size) * static_cast<int>(sizeof(T))});
  }
  // dav-2201 changes formats inside the cube core: nothing is kept in this tensor.
  void SetLocalWorkspace(const Local<std::uint8_t> &) {}

  void SetQuantScalar(const std::uint64_t quantScalar, Site site = Here()) {
    SetMatmulQuant({"SetQuantScalar", site}, *handle_, nullptr, quantScalar);
  }
  void SetQuantVector(const Global<std::uint64_t> &quantTensor, Site site = Here()) {
    SetMatmulQuant({"SetQuantVector", site}, *handle_, &quantTensor.gm(), 0);
  }
  void SetHF32(bool enableHF32 = false, std::int32_t transMode = 0, Site site = Here()) {
    SetMatmulHf32({"SetHF32", site}, *handle_, enableHF32, transMode);
  }

  // For callbacks: numbers, mostly addresses.
  void SetUserDefInfo(const std::uint64_t tilingPtr) { user_ = tilingPtr; }
  template <class T>
  void SetSelfDefineData(T dataPtr) {
    if constexpr (std::is_pointer_v<T>) {
      data_ = reinterpret_cast<std::uint64_t>(dataPtr);
    } else if constexpr (std::is_integral_v<T>) {
      data_ = static_cast<std::uint64_t>(dataPtr);
    } else {
      static_assert(!kCopies, "SetSelfDefineData of the twin takes an address or a number");
    }
  }
  // Which vector core of the pair a cube core's object works for.
  void SetSubBlockIdx(std::uint8_t subBlockIdx) { subBlock_ = subBlockIdx; }
  std::uint8_t GetSubBlockIdx() const { return subBlock_; }

  template <bool sync = true>
  bool Iterate(bool enPartialSum = false, Site site = Here()) {
    static_assert(sync || !kCopies, "the twin models MatmulCallBackFunc of synchronous calls");
    Bring({"Iterate", site});
    return StepMatmul({"Iterate", site}, *handle_, sync, enPartialSum);
  }
  // The base block goes to a tensor of the kernel's own in L0C.
  template <bool sync = true, class T>
  bool Iterate(bool enPartialSum, const Local<T> &localCmatrix, Site site = Here()) {
    static_assert(C_TYPE::pos == AscendC::TPosition::CO1 && C_TYPE::format == CubeFormat::NZ,
                  "Iterate into a tensor needs C at CO1 in NZ");
    static_assert(kOneOf<T, float, std::int32_t> && std::is_same_v<T, DstT>,
                  "C at CO1 is float or int32_t");
    static_assert(!kServed, "L0C belongs to a cube core: its own Matmul object writes it");
    Bring({"Iterate", site});
    return StepMatmulInto({"Iterate", site}, *handle_, localCmatrix.view(), enPartialSum);
  }
  template <bool sync = true>
  void IterateAll(const Global<DstT> &gm, std::uint8_t enAtomic = 0,
                  bool enSequentialWrite = false, bool waitIterateAll = false,
                  bool fakeMsg = false, Site site = Here()) {
    const bool twice = kServed && A_TYPE::ibShare && B_TYPE::ibShare && SubIndex() == 1;
    RestartMatmul(*handle_);
    Bring({"IterateAll", site});
    AllMatmul({"IterateAll", site}, *handle_, PlaceAt(gm),
              {enAtomic, enSequentialWrite, sync, waitIterateAll, twice});
  }
  template <bool sync = true>
  void IterateAll(const Local<DstT> &ubCmatrix, std::uint8_t enAtomic = 0, Site site = Here()) {
    RestartMatmul(*handle_);
    Bring({"IterateAll", site});
    AllMatmul({"IterateAll", site}, *handle_, PlaceAt(ubCmatrix), {enAtomic, false, sync});
  }
  void WaitIterateAll(Site site = Here()) { WaitMatmul({"WaitIterateAll", site}, *handle_); }

  template <bool sync = true>
  void GetTensorC(const Global<DstT> &gm, std::uint8_t enAtomic = 0,
                  bool enSequentialWrite = false, Site site = Here()) {
    FetchMatmul({"GetTensorC", site}, *handle_, PlaceAt(gm), {enAtomic, enSequentialWrite, sync});
  }
  template <bool sync = true>
  void GetTensorC(const Local<DstT> &co2Local, std::uint8_t enAtomic = 0,
                  bool enSequentialWrite = false, Site site = Here()) {
    FetchMatmul({"GetTensorC", site}, *handle_, PlaceAt(co2Local),
                {enAtomic, enSequentialWrite, sync});
  }
  template <bool sync = true>
  void GetTensorC(const Global<DstT> &gm, const Local<DstT> &co2Local, std::uint8_t enAtomic = 0,
                  bool enSequentialWrite = false, Site site = Here()) {
    const MatmulOut out{enAtomic, enSequentialWrite, sync};
    FetchMatmul({"GetTensorC", site}, *handle_, PlaceAt(co2Local), {0, enSequentialWrite, sync});
    FetchMatmul({"GetTensorC", site}, *handle_, PlaceAt(gm), out);
  }
  template <bool sync = true>
  Global<DstT> GetTensorC(std::uint8_t enAtomic = 0, bool enSequentialWrite = false,
                          Site site = Here()) {
    return Tensor(FetchMatmul({"GetTensorC", site}, *handle_, {enAtomic, enSequentialWrite, sync}));
  }
  template <bool sync = true>
  void AsyncGetTensorC(const Local<DstT> &c, Site site = Here()) {
    FetchMatmul({"AsyncGetTensorC", site}, *handle_, PlaceAt(c), {0, false, false});
  }
  void WaitGetTensorC(Site site = Here()) { WaitMatmul({"WaitGetTensorC", site}, *handle_); }
  void End(Site site = Here()) { EndMatmul({"End", site}, *handle_); }

  void SetBatchNum(std::int32_t batchA, std::int32_t batchB) {
    batchA_ = batchA;
    batchB_ = batchB;
  }
  template <bool sync = true, bool waitIterateBatch = false, bool served = kServed,
            std::enable_if_t<served, int> = 0>
  void IterateBatch(const Global<DstT> &gm, std::uint32_t batchA, std::uint32_t batchB,
                    bool enSequentialWrite, const std::uint32_t matrixStrideA = 0,
                    const std::uint32_t matrixStrideB = 0, const std::uint32_t matrixStrideC = 0,
                    const bool enPartialSum = false, const std::uint8_t enAtomic = 0,
                    Site site = Here()) {
    static_assert(!kCopies, "the twin does not model MatmulCallBackFunc in batches");
    BatchMatmul({"IterateBatch", site}, *handle_, PlaceAt(gm),
                {batchA, batchB, matrixStrideA, matrixStrideB, matrixStrideC},
                {enAtomic, enSequentialWrite, sync, waitIterateBatch});
  }
  template <bool sync = true, bool served = kServed, std::enable_if_t<served, int> = 0>
  void IterateBatch(const Local<DstT> &ubCmatrix, std::uint32_t batchA, std::uint32_t batchB,
                    bool enSequentialWrite, const std::uint32_t matrixStrideA = 0,
                    const std::uint32_t matrixStrideB = 0, const std::uint32_t matrixStrideC = 0,
                    const bool enPartialSum = false, const std::uint8_t enAtomic = 0,
                    Site site = Here()) {
    BatchMatmul({"IterateBatch", site}, *handle_, PlaceAt(ubCmatrix),
                {batchA, batchB, matrixStrideA, matrixStrideB, matrixStrideC},
                {enAtomic, enSequentialWrite, sync});
  }
  // The form of cube-only kernels, after SetBatchNum.
  template <bool served = kServed, std::enable_if_t<!served, int> = 0>
  void IterateBatch(const Global<DstT> &gm, bool enPartialSum, std::uint8_t enAtomic,
                    bool enSequentialWrite, const std::uint32_t matrixStrideA = 0,
                    const std::uint32_t matrixStrideB = 0, const std::uint32_t matrixStrideC = 0,
                    Site site = Here()) {
    static_assert(!kCopies, "the twin does not model MatmulCallBackFunc in batches");
    BatchMatmul({"IterateBatch", site}, *handle_, PlaceAt(gm),
                {batchA_, batchB_, matrixStrideA, matrixStrideB, matrixStrideC},
                {enAtomic, enSequentialWrite, true});
  }
  void WaitIterateBatch(Site site = Here()) { WaitMatmul({"WaitIterateBatch", site}, *handle_); }
  template <bool sync = true, bool waitIterateBatch = false>
  void IterateNBatch(const std::uint32_t batchLoop, std::uint32_t batchA, std::uint32_t batchB,
                     bool enSequentialWrite, const std::uint32_t matrixStrideA = 0,
                     const std::uint32_t matrixStrideB = 0, const std::uint32_t matrixStrideC = 0,
                     const bool enPartialSum = false, const std::uint8_t enAtomic = 0,
                     Site site = Here()) {
    static_assert(kConfig.isNBatch, "IterateNBatch needs isNBatch in MatmulConfig");
    LoopMatmul({"IterateNBatch", site}, *handle_, batchLoop,
               {batchA, batchB, matrixStrideA, matrixStrideB, matrixStrideC}, sync,
               !sync && waitIterateBatch);
  }
  template <bool sync = true>
  Global<DstT> GetBatchTensorC(std::uint32_t batchA, std::uint32_t batchB,
                               bool enSequentialWrite = false, Site site = Here()) {
    return Tensor(
        FetchMatmulBatch({"GetBatchTensorC", site}, *handle_, {0, enSequentialWrite, sync}));
  }
  template <bool sync = true>
  void GetBatchTensorC(const Local<DstT> &c, std::uint32_t batchA, std::uint32_t batchB,
                       bool enSequentialWrite = false, Site site = Here()) {
    FetchMatmulBatch({"GetBatchTensorC", site}, *handle_, PlaceAt(c),
                     {0, enSequentialWrite, sync});
  }

 private:
  static constexpr MatmulTraits Traits() {
    return {SideOf<A_TYPE>(),        SideOf<B_TYPE>(), SideOf<C_TYPE>(), SideOf<BIAS_TYPE>(),
            kServed,                 client ? kConfig.enableMixDualMaster && !kOnCube : !kOnCube,
            kConfig.intrinsicsCheck, kConfig.isBiasBatch, kConfig.isEnableChannelSplit,
            kConfig.doMultiDataLoad, kConfig.enUnitFlag, kConfig.isPartialOutput, triangle,
            B_TYPE::sparse};
  }
  // What the kernel's callbacks have to copy before the product begins.
  void Bring(const Call &call) {
    MatmulCopyBlock one;
    if constexpr (MM_CB::copiesA) {
      while (NextMatmulCopy(call, *handle_, MatmulSlot::kA, one)) {
        MM_CB::copyA(Local<std::int8_t>(one.to), one.gm, one.row, one.col, one.high, one.wide,
                     user_, data_);
      }
    }
    if constexpr (MM_CB::copiesB) {
      while (NextMatmulCopy(call, *handle_, MatmulSlot::kB, one)) {
        MM_CB::copyB(Local<std::int8_t>(one.to), one.gm, one.row, one.col, one.high, one.wide,
                     user_, data_);
      }
    }
  }
  template <typename T>
  static double Number(T value) {
    return static_cast<double>(static_cast<float>(value));
  }
  void Set(const char *api, Site site, MatmulSlot slot, const MatmulPlace &place, bool transposed) {
    SetMatmulOperand({api, site}, *handle_, slot, place, transposed);
  }
  static Global<DstT> Tensor(const Gm &gm) {
    Global<DstT> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<DstT *>(gm.base),
                           static_cast<std::uint64_t>(gm.bytes) / sizeof(DstT));
    return tensor;
  }

  MatmulHandle handle_;
  std::uint8_t subBlock_ = 0;
  std::int32_t batchA_ = 1, batchB_ = 1;
  std::uint64_t user_ = 0, data_ = 0;
};

// Objects and their tiling pointers, in any mix: a tiling belongs to the object before it.
template <typename Obj>
void InitObject(Site site, Obj &object, const TCubeTiling *tiling) {
  object.Init(tiling, nullptr, site);
}
inline void InitObjects(Site) {}
template <typename Obj, typename... Rest>
void InitObjects(Site site, Obj &object, Rest &&...rest);
template <typename Obj, typename Next, typename... Rest>
void InitWith(Site site, Obj &object, Next &&next, Rest &&...rest) {
  if constexpr (std::is_convertible_v<Next, const TCubeTiling *>) {  // also of a restrict pointer
    InitObject(site, object, next);
    InitObjects(site, rest...);
  } else {
    InitObjects(site, next, rest...);  // its Init comes later
  }
}
template <typename Obj, typename... Rest>
void InitObjects(Site site, Obj &object, Rest &&...rest) {
  if constexpr (sizeof...(Rest) > 0) InitWith(site, object, rest...);
}

// On a cube core that serves vector cores the kernel ends here: the runtime computes for them.
template <typename Obj, typename... Rest>
void RegisterMatmul(Site site, void *, const void *workspace, Obj &object, Rest &&...rest) {
  if constexpr (Obj::kServed && Obj::kOnCube) {
    ServeMatmuls();
  } else {
    if constexpr (Obj::kServed) CheckMatmulWorkspace({"REGIST_MATMUL_OBJ", site}, workspace);
    InitObjects(site, object, rest...);
  }
}

#ifdef ASCENDC_CUBE_ONLY
inline constexpr bool kCubeOnly = true;
#else
inline constexpr bool kCubeOnly = false;
#endif

}  // namespace twin

namespace AscendC {

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE,
          const auto &MM_CFG = CFG_NORM,
          class MM_CB = MatmulCallBackFunc<nullptr, nullptr, nullptr>,
          template <const auto &, typename, typename, typename, typename, typename>
          class MATMUL_POLICY = MatmulPolicy>
class Matmul
    : public twin::MatmulObject<
          !twin::kCubeOnly, A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB,
          MATMUL_POLICY<MM_CFG, void, A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE>::kTriangle> {};

// The object that a cube core uses by itself.
template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE,
          const auto &MM_CFG = CFG_NORM,
          class MM_CB = MatmulCallBackFunc<nullptr, nullptr, nullptr>,
          template <const auto &, typename, typename, typename, typename, typename>
          class MATMUL_POLICY = MatmulPolicy>
class MatmulImpl
    : public twin::MatmulObject<
          false, A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB,
          MATMUL_POLICY<MM_CFG, void, A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE>::kTriangle> {};

}  // namespace AscendC

namespace matmul {
using namespace AscendC;
}

#define REGIST_MATMUL_OBJ(tpipe, workspace, ...) \
  ::twin::RegisterMatmul(::twin::Here(), tpipe, workspace, __VA_ARGS__)
#define REGISTER_MATMUL_OBJ REGIST_MATMUL_OBJ
