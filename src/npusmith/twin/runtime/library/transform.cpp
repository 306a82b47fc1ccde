// Changes of layout inside UB.
#include "twin/transform.h"

#include <algorithm>

#include "check.h"
#include "log/record.h"
#include "text.h"

namespace twin {

namespace {

constexpr std::int64_t kSquare = 16;  // a fractal has 16 rows and 16 columns

std::int64_t Squares(std::int64_t n) { return (n + kSquare - 1) / kSquare; }

void Move(std::uint8_t *to, std::int64_t at, const std::uint8_t *from, std::int64_t where,
          std::int64_t size) {
  std::copy_n(from + where * size, size, to + at * size);
}

bool Apart(const Call &call, const View *scratch, const View &dst, std::int64_t dstBytes,
           const View &src, std::int64_t srcBytes) {
  if (scratch != nullptr) {
    Disjoint(call, "sharedTmpBuffer", *scratch, kBlock, "src", src, srcBytes);
    Disjoint(call, "sharedTmpBuffer", *scratch, kBlock, "dst", dst, dstBytes);
  }
  return Disjoint(call, "dst", dst, dstBytes, "src", src, srcBytes);
}

// Tiling that nobody computed has zeros where a shape should be.
bool HasShape(const Call &call, std::int64_t height, std::int64_t width, const char *function) {
  if (height > 0 && width > 0) return true;
  Report(call, "tiling-shape", Text("%s got tiling without a shape", call.api),
         Text("%lld x %lld", Ll(height), Ll(width)), Text("tiling from %s", function));
  return false;
}

bool CheckPad(const Call &call, const PadJob &job, std::int64_t size) {
  if (!HasShape(call, job.height, job.width, "PadTilingFunc")) return false;
  const bool whole = job.width * size % kBlock == 0;
  const std::int64_t room = RoundUp(job.width * size, kBlock) / size;
  std::string wrong;
  if (whole && job.original >= job.width) wrong = "rows that are full have nothing to pad";
  else if (whole && job.left > 0) wrong = "rows of a multiple of 32 B are padded on the right only";
  else if (job.left + job.original + job.right > room) wrong = "the padded row is too long";
  if (wrong.empty()) return true;
  Report(call, "param-range", Text("%s: %s", call.api, wrong.c_str()),
         Text("%lld columns of which %lld count, leftPad %lld, rightPad %lld", Ll(job.width),
              Ll(job.original), Ll(job.left), Ll(job.right)),
         Text("at most %lld columns in all", Ll(room)));
  return false;
}

}  // namespace

void PadRows(const Call &call, DType type, const View &dst, const View &src, const View *scratch,
             const PadJob &job, const void *value) {
  Core &core = Enter(call);
  const std::int64_t size = SizeOf(type);
  if (!CheckPad(call, job, size) || !HasScratch(core, call, scratch, kBlock)) return;
  const std::int64_t pitch = RoundUp(job.width * size, kBlock) / size;
  const std::int64_t run = job.left + job.original + job.right;
  const std::int64_t srcBytes = ((job.height - 1) * job.width + job.original) * size;
  const std::int64_t dstBytes = ((job.height - 1) * pitch + run) * size;
  const std::uint8_t *from = Usable(core, call, {"src", &src, srcBytes, kBlock, Use::kByRole,
                                                 {job.original * size, job.width * size}});
  std::uint8_t *to = Usable(core, call, {"dst", &dst, dstBytes, kBlock, Use::kByRole,
                                         {run * size, pitch * size}});
  if (from == nullptr || to == nullptr) return;
  if (!Apart(call, scratch, dst, dstBytes, src, srcBytes)) return;
  RecordLibrary(call.api, type, job.height * job.width);
  if (Dry()) return;
  const auto *filler = static_cast<const std::uint8_t *>(value);
  for (std::int64_t row = 0; row < job.height; ++row) {
    for (std::int64_t i = 0; i < run; ++i) {
      const std::int64_t column = i - job.left;
      const bool inside = column >= 0 && column < job.original;
      if (inside) Move(to, row * pitch + i, from, row * job.width + column, size);
      else Move(to, row * pitch + i, filler, 0, size);
    }
  }
}

void UnPadRows(const Call &call, DType type, const View &dst, const View &src,
               const View *scratch, std::int64_t height, std::int64_t width, std::int64_t right) {
  Core &core = Enter(call);
  const std::int64_t size = SizeOf(type);
  if (!HasShape(call, height, width, "UnPadTilingFunc")) return;
  if (!InRange(call, "rightPad", right, 1, std::min(width, kBlock / size) - 1)) return;
  if (width * size % kBlock != 0) {
    Report(call, "param-range", Text("rows of %s have %lld B", call.api, Ll(width * size)),
           Text("%lld columns", Ll(width)), "a multiple of 32 B");
    return;
  }
  if (!HasScratch(core, call, scratch, kBlock)) return;
  const std::int64_t kept = width - right;
  const std::int64_t srcBytes = ((height - 1) * width + kept) * size;
  const std::int64_t dstBytes = height * kept * size;
  const std::uint8_t *from = Usable(core, call, {"src", &src, srcBytes, kBlock, Use::kByRole,
                                                 {kept * size, width * size}});
  std::uint8_t *to = Usable(core, call, {"dst", &dst, dstBytes});
  if (from == nullptr || to == nullptr) return;
  if (!Apart(call, scratch, dst, dstBytes, src, srcBytes)) return;
  RecordLibrary(call.api, type, height * width);
  if (Dry()) return;
  for (std::int64_t row = 0; row < height; ++row) {
    std::copy_n(from + row * width * size, kept * size, to + row * kept * size);
  }
}

void SwapChannels(const Call &call, DType type, const View &dst, const View &src,
                  const View &scratch, const ImageJob &job, bool toNhwc) {
  Core &core = Enter(call);
  const std::int64_t size = SizeOf(type), pixels = job.h * job.w;
  if (!InRange(call, "cSize", job.c, 0, 4095) || !InRange(call, "hSize * wSize", pixels, 0, 4095)) {
    return;
  }
  if (pixels * size % kBlock != 0) {
    Report(call, "param-range",
           Text("images of %s have %lld B a channel", call.api, Ll(pixels * size)),
           Text("hSize %lld, wSize %lld", Ll(job.h), Ll(job.w)), "a multiple of 32 B");
    return;
  }
  const std::int64_t bytes = job.n * job.c * pixels * size;
  if (bytes == 0 || !HasScratch(core, call, &scratch, NchwScratch(job.c, size, toNhwc))) return;
  const std::uint8_t *from = Usable(core, call, {"src", &src, bytes});
  std::uint8_t *to = Usable(core, call, {"dst", &dst, bytes});
  if (from == nullptr || to == nullptr) return;
  if (!Apart(call, &scratch, dst, bytes, src, bytes)) return;
  RecordLibrary(call.api, type, bytes / size);
  if (Dry()) return;
  const std::int64_t rows = toNhwc ? job.c : pixels, columns = toNhwc ? pixels : job.c;
  for (std::int64_t image = 0; image < job.n; ++image) {
    const std::int64_t base = image * rows * columns;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        Move(to, base + j * rows + i, from, base + i * columns + j, size);
      }
    }
  }
}

namespace {

// One tensor of a scene: planes of rows and columns, as fractals (NZ) or as plain rows (ND).
struct Planes {
  bool fractal;
  std::int64_t count, rows, columns;
  bool tight = false;  // ND of scene 1: rows are not padded to 16

  std::int64_t pitch() const { return tight ? columns : Squares(columns) * kSquare; }
  std::int64_t length() const {
    if (fractal) return count * Squares(columns) * Squares(rows) * kSquare * kSquare;
    return count * rows * pitch();
  }
  std::int64_t At(std::int64_t plane, std::int64_t row, std::int64_t column) const {
    if (fractal) {
      const std::int64_t down = Squares(rows), across = Squares(columns);
      const std::int64_t square = (plane * across + column / kSquare) * down + row / kSquare;
      return (square * kSquare + row % kSquare) * kSquare + column % kSquare;
    }
    return (plane * rows + row) * pitch() + column;
  }
};

// The two sides of scenes 1 to 6.
struct Scene {
  Planes from, to;
  bool swap;          // [b, n, s] becomes [b, s, n]
  bool fromWhole, toWhole;  // the n parts lie side by side in one row
};

Scene SceneFor(const SceneJob &job) {
  const std::int64_t whole = job.n * job.h;
  const Planes parts{true, job.b * job.n, job.s, job.h};
  const Planes joined{true, job.b, job.s, whole};
  switch (job.scene) {
    case 1: return {parts, {false, job.b * job.s, job.n, job.h, true}, true, false, false};
    case 2: return {parts, {true, job.b * job.s, job.n, job.h}, true, false, false};
    case 3: return {joined, parts, false, true, false};
    case 4: return {joined, {false, job.b * job.n, job.s, job.h}, false, true, false};
    case 5: return {parts, {false, job.b, job.s, whole}, false, false, true};
    default: return {parts, joined, false, false, true};
  }
}

std::int64_t Locate(const Planes &planes, bool whole, bool swap, const SceneJob &job,
                    std::int64_t b, std::int64_t n, std::int64_t s, std::int64_t h) {
  if (whole) return planes.At(b, s, n * job.h + h);
  if (swap) return planes.At(b * job.s + s, n, h);
  return planes.At(b * job.n + n, s, h);
}

void RunScene(std::uint8_t *to, const std::uint8_t *from, const Scene &scene, const SceneJob &job,
              std::int64_t size) {
  for (std::int64_t b = 0; b < job.b; ++b) {
    for (std::int64_t n = 0; n < job.n; ++n) {
      for (std::int64_t s = 0; s < job.s; ++s) {
        for (std::int64_t h = 0; h < job.h; ++h) {
          Move(to, Locate(scene.to, scene.toWhole, scene.swap, job, b, n, s, h), from,
               Locate(scene.from, scene.fromWhole, false, job, b, n, s, h), size);
        }
      }
    }
  }
}

bool CheckScene(const Call &call, const SceneJob &job, std::int64_t size) {
  if (!InRange(call, "transposeType", job.scene, 1, 7)) return false;
  if (job.scene != job.host || size != job.hostSize) {
    Report(call, "tiling-shape", Text("%s got tiling for another case", call.api),
           Text("scene %d of %lld-byte elements, the kernel asks for scene %d of %lld-byte ones",
                job.host, Ll(job.hostSize), job.scene, Ll(size)),
           "tiling from GetTransposeTilingInfo with the same transposeType and typeSize");
    return false;
  }
  if (job.scene == 7 && (job.b % kSquare != 0 || job.n % kSquare != 0)) {
    Report(call, "param-range", Text("%s of %lld x %lld", call.api, Ll(job.b), Ll(job.n)), "",
           "sides that are multiples of 16");
    return false;
  }
  return true;
}

}  // namespace

void TransposeScene(const Call &call, DType type, const View &dst, const View &src,
                    const View *scratch, const SceneJob &job) {
  Core &core = Enter(call);
  const std::int64_t size = SizeOf(type);
  if (!CheckScene(call, job, size)) return;
  const bool flat = job.scene == 7;
  const Scene scene = SceneFor(job);
  const std::int64_t srcBytes = (flat ? job.b * job.n : scene.from.length()) * size;
  const std::int64_t dstBytes = (flat ? job.b * job.n : scene.to.length()) * size;
  if (srcBytes == 0 || !HasScratch(core, call, scratch, kBlock)) return;
  const std::uint8_t *from = Usable(core, call, {"src", &src, srcBytes});
  std::uint8_t *to = Usable(core, call, {"dst", &dst, dstBytes});
  if (from == nullptr || to == nullptr) return;
  if (!Apart(call, scratch, dst, dstBytes, src, srcBytes)) return;
  RecordLibrary(call.api, type, srcBytes / size);
  if (Dry()) return;
  if (!flat) {
    RunScene(to, from, scene, job, size);
    return;
  }
  for (std::int64_t i = 0; i < job.b; ++i) {
    for (std::int64_t j = 0; j < job.n; ++j) Move(to, j * job.b + i, from, i * job.n + j, size);
  }
}

void TransVolume(const Call &call, const View &dst, const View &src, const View *scratch,
                 const VolumeJob &job) {
  Core &core = Enter(call);
  constexpr std::int64_t kSize = 2;
  const std::int64_t pixels = job.h * job.w;
  // doc: the joined H and W axes are padded to 32 B in the plain format
  const std::int64_t pitch = RoundUp(pixels * kSize, kBlock) / kSize;
  const std::int64_t c1 = Squares(job.c), n1 = Squares(job.n);
  const std::int64_t plain = job.n * job.c * job.d * pitch;
  const std::int64_t split = job.fractal ? job.d * c1 * pixels * n1 * kSquare * kSquare
                                         : job.n * job.d * c1 * pixels * kSquare;
  const std::int64_t srcBytes = (job.back ? split : plain) * kSize;
  const std::int64_t dstBytes = (job.back ? plain : split) * kSize;
  if (srcBytes == 0 || !HasScratch(core, call, scratch, kBlock)) return;
  const std::uint8_t *from = Usable(core, call, {"src", &src, srcBytes});
  std::uint8_t *to = Usable(core, call, {"dst", &dst, dstBytes});
  if (from == nullptr || to == nullptr) return;
  if (!Apart(call, scratch, dst, dstBytes, src, srcBytes)) return;
  RecordLibrary(call.api, DType::kF16, srcBytes / kSize);
  if (Dry()) return;
  // guess: what pads C and N to 16 is zero
  if (!job.back) std::fill(to, to + dstBytes, std::uint8_t{0});
  for (std::int64_t n = 0; n < job.n; ++n) {
    for (std::int64_t c = 0; c < job.c; ++c) {
      for (std::int64_t at = 0; at < job.d * pixels; ++at) {
        const std::int64_t d = at / pixels, p = at % pixels;
        const std::int64_t here = ((n * job.c + c) * job.d + d) * pitch + p;
        const std::int64_t cell = (d * c1 + c / kSquare) * pixels + p;
        const std::int64_t there =
            job.fractal ? ((cell * n1 + n / kSquare) * kSquare + n % kSquare) * kSquare +
                              c % kSquare
                        : (n * job.d * c1 * pixels + cell) * kSquare + c % kSquare;
        if (job.back) Move(to, here, from, there, kSize);
        else Move(to, there, from, here, kSize);
      }
    }
  }
}

}  // namespace twin
