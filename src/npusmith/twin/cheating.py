"""Bindings that compute themselves: `find_cheats(text, path)`, read from the text.

A binding may allocate, look at shapes, take views, fill and copy; what is computed must come out of
EXEC_NPU_CMD or a launch. The reading is lexical: it knows names, and which of them are tensors.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from npusmith.twin import scan
from npusmith.twin.finding import Finding

_CODE = "cheat-binding"
_MOST = 20


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Lower-case functions of at::, torch:: and c10:: that compute nothing; types begin upper-case.
_HARMLESS = _words(
    """
    empty empty_like empty_strided zeros zeros_like ones ones_like full full_like scalar_tensor
    tensor from_blob infer_size infer_size_dimvector dtype device layout requires_grad
    elementSize isFloatingType isIntegralType toString typeMetaToScalarType scalarTypeToTypeMeta
    optTypeMetaToScalarType makeArrayRef make_optional nullopt get_device device_of str
    maybe_wrap_dim expand_size view_as_real view_as_complex broadcast_tensors expand_inplace
    manual_seed set_num_threads getDefaultDtype get_default_dtype
    get_default_dtype_as_scalartype is_complex isComplexType multiply_integers numelements
    """
)
# Methods and functions of tensors that compute values, without trailing underscore.
_COMPUTES = _words(
    """
    abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr all allclose amax amin
    angle any argmax argmin argsort asin asinh atan atan2 atanh baddbmm batch_norm bernoulli
    bincount bitwise_and bitwise_not bitwise_or bitwise_xor bmm celu ceil cdist clamp clamp_max
    clamp_min clip conv1d conv2d conv3d conv_transpose2d convolution copysign cos cosh cross
    cummax cummin cumprod cumsum deg2rad det diff div divide dot dropout einsum elu embedding eq
    equal erf erfc erfinv exp exp2 expm1 fft floor floor_divide fmax fmin fmod frac gather gcd
    ge gelu gelu_backward geqrf ger glu greater greater_equal group_norm gt hardshrink
    hardsigmoid hardswish hardtanh heaviside histc huber_loss hypot index_add index_reduce inner
    instance_norm inverse isclose isfinite isinf isnan isneginf isposinf kl_div kron kthvalue
    l1_loss layer_norm le leaky_relu lerp less less_equal lgamma linalg linear log log10 log1p
    log2 log_sigmoid log_softmax logaddexp logical_and logical_not logical_or logical_xor logit
    logsumexp lt masked_fill matmul matrix_exp max max_pool1d max_pool2d max_pool3d maximum mean
    median min minimum mish mm mode mse_loss mul multinomial multiply mv nan_to_num nanmean
    nansum native_layer_norm neg negative ne nll_loss norm normal not_equal outer polygamma pow
    prelu prod put quantile quantize_per_channel quantize_per_tensor rad2deg reciprocal relu
    relu6 remainder renorm rms_norm round rrelu rsqrt rsub scaled_dot_product_attention scatter
    scatter_add scatter_reduce selu sgn sigmoid sign silu sin sinc sinh smooth_l1_loss softmax
    softmin softplus softshrink sort sqrt square std std_mean sub subtract sum svd tan tanh
    tanhshrink tensordot threshold topk trace tril triplet_margin_loss triu true_divide trunc
    unique upsample_nearest2d var var_mean vdot where xlogy
    """
)
_SPACED = re.compile(
    r"\b(?:at|torch|c10)\s*::\s*((?:\w+\s*::\s*)*)(\w+)\s*(?:<[^<>;]{0,80}>)?\s*\("
)
_METHOD = re.compile(r"(?:\.|->)\s*(\w+)\s*\(")
_SIZE = re.compile(
    r"[^()]{0,80}\)\s*\.\s*item\s*<\s*(?:int|long|int64_t|int32_t|size_t)\s*>"
)  # a count
_BARE = re.compile(r"(?<![\w.:>])(\w+)\s*\(")
_USING = re.compile(
    r"\busing\s+namespace\s+(?:at|torch)\s*;|\busing\s+(?:at|torch)\s*::\s*(\w+)\s*;"
)
_TENSOR = re.compile(r"\b(?:at|torch)\s*::\s*Tensor\s*&?\s*&?\s*(\w+)\s*(?=[=,);({])")
_DECLARES = re.compile(
    r"(?:\b(?:Tensor|auto|const|void|char|bool|short|int|long|unsigned|float|double|half|GM_ADDR)"
    r"|_t|__gm__)\s*$"
)
_MOST_TENSORS = 200  # whose use is looked at
_PARAMETER = re.compile(
    r"[(,]\s*(?:const\s+)?(?:(?:at|torch)\s*::\s*)?Tensor\s*(?:const\s*)?&{0,2}\s*(\w+)\s*(?=[,)])"
)
_POINTER = r"\s*(?:\.|->)\s*(?:(?:mutable|const)_)?data_ptr\s*(?:<[^<>;]{0,40}>)?\s*\(\s*\)"
_CAST = (
    r"(?:\([\w:\s]{1,40}\*+\s*\)\s*|(?:reinterpret|static|const)_cast\s*<[^<>;]{1,40}>\s*\(\s*)*"
)
_ESCAPES = re.compile(
    r"\b(?:dlsym|dlopen|PyRun_\w+|PyImport_\w+|PyObject_Call\w*|c10\s*::\s*Dispatcher|at\s*::\s*_ops"
    r"|at\s*::\s*redispatch|torch\s*::\s*jit|(?:py|pybind11)\s*::\s*(?:module_?\s*::\s*import|exec|eval))\b"
)


def find_cheats(text: str, path: Path) -> list[Finding]:
    """Every place where a binding computes, as findings of level error; the first ones of many."""
    code = scan.blank(text)
    rows = sorted(set(_places(code)))
    return [
        Finding(
            code=_CODE,
            message="the binding computes",
            file=str(path),
            line=scan.line_of(code, at),
            seen=seen,
        )
        for at, seen in rows[:_MOST]
    ]


def _places(code: str) -> Iterator[tuple[int, str]]:
    for match in _SPACED.finditer(code):
        inner, name = re.sub(r"\s", "", match.group(1)), match.group(2)
        if inner.startswith(("autograd::", "indexing::")) and not _computes(name):
            continue
        if inner and not _computes(name) and not inner.startswith(("nn::", "native::", "linalg_")):
            continue
        if name[0].islower() and name not in _HARMLESS:
            yield match.start(), f"{inner}{name}"
    for match in _METHOD.finditer(code):
        if _computes(match.group(1)) and not _SIZE.match(code, match.end()):
            yield match.start(), f".{match.group(1)}"
    for match in _ESCAPES.finditer(code):
        yield match.start(), re.sub(r"\s", "", match.group())
    yield from _bare(code)
    yield from _operators(code)
    yield from _elements(code)


def _computes(name: str) -> bool:
    return name.removesuffix("_") in _COMPUTES


def _bare(code: str) -> Iterator[tuple[int, str]]:
    """Functions without their namespace, where the text pulls one in."""
    opened = [match.group(1) for match in _USING.finditer(code)]
    if not opened:
        return
    everything = None in opened
    own = set(re.findall(r"\b[\w:<>&*]+\s+(\w+)\s*\([^()]*\)\s*(?:const\s*)?\{", code))
    for match in _BARE.finditer(code):
        name = match.group(1)
        if name not in own and _computes(name) and (everything or name in opened):
            yield match.start(), name


def _scopes(code: str, declared: re.Pattern[str]) -> Iterator[tuple[str, str, int]]:
    """Names that are declared so, with the text in which they are that, and where it begins.

    Of a parameter it is the function, of a variable the rest of its block: other functions of a
    file have pointers of the same names.
    """
    marks = [(mark.start(), mark.group()) for mark in re.finditer(r"[(){};]", code)]
    places = [at for at, _ in marks]
    seen: set[tuple[str, int]] = set()  # names, and where their blocks end
    for match in islice(declared.finditer(code), _MOST_TENSORS):
        start, depth, inside = match.end(), 0, 0
        end = len(code)
        for at, mark in islice(marks, bisect_left(places, start), None):
            inside += {"(": 1, ")": -1}.get(mark, 0)
            depth += {"{": 1, "}": -1}.get(mark, 0)
            parameter = inside < 0
            if depth < 0 or (depth == 0 and parameter and mark in ";}"):
                end = at
                break
        if (key := (match.group(1), end)) not in seen:
            seen.add(key)
            yield match.group(1), code[start:end], start


def _operators(code: str) -> Iterator[tuple[int, str]]:
    """Arithmetic on what is declared as a tensor."""
    for name, text, start in _scopes(code, _TENSOR):
        plain = re.compile(
            rf"(?<![\w.>:]){name}\s*(?:[-+*/]=?(?![-+>*/=])|[-+*/]=)\s*(?=[\w(])"
            rf"|(?<=[\w)])\s*[-+*/]\s*{name}\b(?!\s*(?:\.|->|\(|\[|::))"
        )
        for match in plain.finditer(text):
            # `const at::Tensor *x`, `Tensor &x` and `uint8_t * x` are declarations
            head = text[max(0, match.start() - 12) : match.start() + 1]
            if not _DECLARES.search(head):
                yield start + match.start(), f"arithmetic on {name}"


def _elements(code: str) -> Iterator[tuple[int, str]]:
    """Elements of a parameter that the host reads or writes through a pointer.

    They lie in the chip's memory: on a device this ends the process. Tensors that a function makes
    itself may be the host's own (tiling data), and are not looked at.
    """
    for name, text, start in _scopes(code, _PARAMETER):
        taken = rf"\b{name}{_POINTER}"
        for match in re.finditer(rf"\*\s*\(*{_CAST}{taken}|{taken}[\s)]*\[", text):
            if not _DECLARES.search(text[max(0, match.start() - 12) : match.start()]):
                yield start + match.start(), f"an element of {name}"
        for held in re.findall(rf"(\w+)\s*=\s*{_CAST}{taken}", text):
            read = re.compile(
                rf"(?<![\w.>]){held}\s*\[|(?<=[-+(=,;{{}}*/<>!&|?:])\s*\*\s*\(?\s*{held}\b"
            )
            for match in read.finditer(text):
                yield start + match.start(), f"an element of {name}"
