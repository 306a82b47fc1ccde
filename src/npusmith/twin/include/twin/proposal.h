// Region proposals: Atlas 310P and the first training chips have them, dav-2201 has not.
//
// A project whose OpDef is also configured for such a chip may name them in branches that this one
// never takes, so there they compile and each call is a finding. Anywhere else they do not compile.
#pragma once

#include "twin/sort.h"

namespace twin {

// Defined (for 0) by the unit of a project that is configured for a chip with region proposals.
template <int>
struct RegionProposals;
template <typename T, typename = void>
inline constexpr bool kProposals = false;
template <typename T>
inline constexpr bool
    kProposals<T, std::void_t<decltype(sizeof(RegionProposals<static_cast<int>(sizeof(T)) * 0>))>> =
        true;

}  // namespace twin

namespace AscendC {

template <typename T>
void ProposalConcat(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                    const std::int32_t repeatTime, const std::int32_t modeNumber,
                    twin::Site site = twin::Here()) {
  static_assert(twin::kProposals<T>,
                "ProposalConcat is not on dav-2201 (Atlas A2): Atlas 310P has it; sort with "
                "Concat, Sort and Extract");
  static_assert(twin::kOneOf<T, half, float>, "ProposalConcat takes half or float");
  twin::ProposalOp({"ProposalConcat", site}, twin::Proposal::kConcat, twin::TagOf<T>(), dst.view(),
                   src.view(), repeatTime, modeNumber);
}
template <typename T>
void ProposalExtract(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                     const std::int32_t repeatTime, const std::int32_t modeNumber,
                     twin::Site site = twin::Here()) {
  static_assert(twin::kProposals<T>,
                "ProposalExtract is not on dav-2201 (Atlas A2): Atlas 310P has it; sort with "
                "Concat, Sort and Extract");
  static_assert(twin::kOneOf<T, half, float>, "ProposalExtract takes half or float");
  twin::ProposalOp({"ProposalExtract", site}, twin::Proposal::kExtract, twin::TagOf<T>(),
                   dst.view(), src.view(), repeatTime, modeNumber);
}
template <typename T>
void RpSort16(const LocalTensor<T> &dst, const LocalTensor<T> &src, const std::int32_t repeatTime,
              twin::Site site = twin::Here()) {
  static_assert(twin::kProposals<T>,
                "RpSort16 is not on dav-2201 (Atlas A2): Atlas 310P has it; use Sort32");
  static_assert(twin::kOneOf<T, half, float>, "RpSort16 takes half or float");
  twin::ProposalOp({"RpSort16", site}, twin::Proposal::kSort, twin::TagOf<T>(), dst.view(),
                   src.view(), repeatTime, 0);
}
template <typename T>
void MrgSort4(const LocalTensor<T> &dst, const MrgSortSrcList<T> &src, const MrgSort4Info &how,
              twin::Site site = twin::Here()) {
  static_assert(twin::kProposals<T>,
                "MrgSort4 is not on dav-2201 (Atlas A2): Atlas 310P has it; use MrgSort");
  static_assert(twin::kOneOf<T, half, float>, "MrgSort4 takes half or float");
  const twin::View lists[] = {src.src1.view(), src.src2.view(), src.src3.view(), src.src4.view()};
  twin::MergeProposals({"MrgSort4", site}, twin::TagOf<T>(), dst.view(),
                       {lists, how.elementLengths, how.validBit, how.repeatTimes,
                        how.ifExhaustedSuspension});
}

}  // namespace AscendC
