"""One exception family and one table of stable codes.

The code is the key everywhere: in messages, in docs/errors.md (generated from CODES), in findings
of the twin, in the knowledge store. A message says where, what was seen, what is legal
and what to try.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(str, Enum):
    """How bad a finding is: an error fails the verdict, a warning and a note do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the table: what the code means, what is legal, what usually helps."""

    name: str
    area: str
    meaning: str
    legal: str
    hint: str
    level: Level = Level.ERROR


def _rows(area: str, *rows: tuple[str, str, str, str]) -> list[Code]:
    return [Code(name, area, meaning, legal, hint) for name, meaning, legal, hint in rows]


def _warn(area: str, *rows: tuple[str, str, str, str]) -> list[Code]:
    return [
        Code(name, area, meaning, legal, hint, Level.WARNING) for name, meaning, legal, hint in rows
    ]


def _note(area: str, *rows: tuple[str, str, str, str]) -> list[Code]:
    return [
        Code(name, area, meaning, legal, hint, Level.NOTE) for name, meaning, legal, hint in rows
    ]


# --- lang: the text of a tile program -------------------------------------------------------------
_LANG: list[Code] = _rows(
    "lang",
    # reading the text
    (
        "lang-syntax",
        "The text is not Python syntax.",
        "Python syntax, in the subset that docs/language.md describes",
        "look at the line and the one above it for an open bracket or a missing colon",
    ),
    (
        "lang-too-large",
        "The text, or one statement of it, is too long.",
        "at most 1048576 characters, 16000 of them in one statement",
        "use loops, and split long expressions over several assignments",
    ),
    (
        "lang-too-deep",
        "Brackets, expressions or statements are nested too deeply.",
        "at most 30 open brackets and 100 levels of nesting",
        "split the expression over several assignments",
    ),
    (
        "lang-text",
        "A note or docstring cannot be written to a file.",
        "Unicode text without lone surrogates",
        "remove the escape sequence",
    ),
    (
        "lang-module",
        "Something at module level is neither a constant nor a function.",
        "a docstring, NAME = number, one @host function and one @kernel function",
        "move it into a function",
    ),
    (
        "lang-const",
        "A module constant is not a number, or is defined twice.",
        "NAME = a number, or an expression of numbers and constants above",
        "compute it in the host function and pass it through launch()",
    ),
    (
        "lang-functions",
        "A function is missing, doubled or without its mark.",
        "exactly one function marked @host and one marked @kernel",
        "write @host or @kernel on the line above the function",
    ),
    (
        "lang-param",
        "A parameter is not declared as the language wants it.",
        "x: input(float32), y: output(float32), w: scratch(float32), n: int or s: float",
        "annotate every parameter of the kernel, and none of the host function",
    ),
    (
        "lang-dtype",
        "There is no such element type, or it cannot be used here.",
        "the dtype names of docs/language.md; a bool tensor is uint8 in a buffer",
        "use float32, float16, bfloat16, int32, int16, int8, uint8, ...",
    ),
    (
        "lang-statement",
        "The language has no such statement.",
        "assignments, for over range(), if, with a stage, operations, notes",
        "see docs/language.md",
    ),
    (
        "lang-expression",
        "The language has no such expression.",
        "numbers, names, + - * / // %, comparisons, and, or, not, a if c else b, "
        "min, max, ceil_div, align_up, float, int, core_id, core_count, value",
        "see docs/language.md",
    ),
    (
        "lang-number",
        "A number cannot be represented.",
        "ints of 64 bits, finite floats, inf and -inf",
        "use a smaller number",
    ),
    (
        "lang-assign",
        "The target of an assignment is not one name that may be assigned.",
        "name = expr, where name is no loop variable, parameter, constant, tensor or buffer",
        "use another variable",
    ),
    (
        "lang-unknown-op",
        "There is no operation or function of that name.",
        "the operations of docs/reference.md",
        "see docs/reference.md",
    ),
    (
        "lang-foreign",
        "A function of another system is used.",
        "the operations of docs/reference.md",
        "see docs/reference.md",
    ),
    (
        "lang-op-value",
        "An operation on buffers is used as a value.",
        "an operation is a statement whose first operand is its destination",
        "write op(dst, src, n) as a statement of its own",
    ),
    (
        "lang-operands",
        "An operation or function has the wrong operands.",
        "the operands that docs/reference.md lists, by position",
        "see docs/reference.md",
    ),
    (
        "lang-mode",
        "There is no such mode.",
        "a mode of the operation, in quotes",
        "see docs/reference.md",
    ),
    (
        "lang-lowered",
        "A statement that only the lowering writes stands in a tile program.",
        "loads, operations, stores, combines and sync_cores()",
        "leave queues, events and barriers out: the lowering inserts them",
    ),
    (
        "lang-host",
        "The host function holds something that belongs to the kernel, or the other way round.",
        "host: assignments over x.shape[i], x.size and chip facts; "
        "kernel: parameters, core_id(), core_count(), value()",
        "compute it on the host and pass it through launch()",
    ),
    (
        "lang-launch",
        "launch() is missing, misplaced, or does not fit the kernel.",
        "launch(kernel, cores, name=value, ...) as the host's last statement: a value for each "
        "int and float parameter, a length for each scratch tensor",
        "name every parameter of the kernel once",
    ),
    (
        "lang-buffer-place",
        "A buffer is declared in the wrong place.",
        "name = ub(length, dtype) at the top of the kernel, before its first statement",
        "move the declaration to the top of the kernel",
    ),
    # names and types
    (
        "lang-name",
        "A name is reserved, or used for two things.",
        "ASCII names that are not words of the language, of C++ or of another thing",
        "choose another name",
    ),
    (
        "lang-unknown-name",
        "A name is not known, or has no value here.",
        "names assigned before on every way here; one first assigned in a loop or branch ends "
        "with it",
        "assign it before the loop or branch",
    ),
    (
        "lang-type",
        "Ints, floats and bools are mixed.",
        "both sides of one type; / for floats, // and % for ints; conditions are bools",
        "convert with float() or int(), or write 2.0 instead of 2",
    ),
    (
        "lang-tensor",
        "A tensor's role is violated: inputs are read-only, outputs write-only.",
        "inputs are loaded, outputs are stored, scratch tensors both; declared in this order",
        "use a scratch tensor for what is written and read again",
    ),
    (
        "lang-buffer",
        "A buffer is expected where something else stands.",
        "a name declared with ub()",
        "load() the tensor into a buffer first",
    ),
    (
        "lang-buffer-length",
        "The length of a buffer is not a positive int known before the run.",
        "an expression of int literals and module constants, at least 1",
        "make the length a module constant and pass shorter counts at run time",
    ),
    # operations
    (
        "lang-op-dtype",
        "An operation does not exist for these element types.",
        "the element types that docs/reference.md lists for the operation",
        "cast to float32, compute, and cast back",
    ),
    (
        "lang-cast",
        "There is no such conversion.",
        "the pairs and modes of docs/reference.md",
        "go through float32",
    ),
    (
        "lang-tmp",
        "A reduction's tmp is not a buffer of its own.",
        "tmp: another buffer than source and destination, of the source's dtype and length",
        "declare tmp = ub(length, dtype) for it",
    ),
    (
        "lang-mask",
        "A mask is not a uint8 buffer that is large enough.",
        "uint8, one bit per element, with whole 256-byte repeats of the source counted",
        "mask = ub(align_up(length, 256) // 8, uint8)",
    ),
    (
        "lang-overlap",
        "Source and destination overlap in part.",
        "the same view or disjoint ones; always disjoint for library functions and reductions",
        "use another buffer for the destination",
    ),
    (
        "lang-atomic",
        "An atomic store does not exist for this element type.",
        "float32, float16, bfloat16, int32, int16, int8",
        "cast before the store",
    ),
    (
        "lang-combine",
        "A combine's operands do not fit.",
        "scratch buffers and a scratch tensor of one dtype out of float32, float16, int32, int16, "
        "with core_count() * align_up(count, one block) elements in the scratch tensor",
        "copy into a buffer that is neither loaded nor stored",
    ),
    # stages and control flow
    (
        "lang-stage",
        "A statement stands in the wrong stage.",
        "load in copy_in, operations in compute, store in copy_out, stages not nested, "
        "value() in compute or outside of stages",
        "close the stage and open the right one",
    ),
    (
        "lang-divergent",
        "A cross-core barrier stands in divergent control flow.",
        "combine_* and sync_cores() outside stages, in loops and branches whose bounds and "
        "conditions do not depend on core_id() or value(); post() and wait() in those that do not "
        "depend on value()",
        "move it out of the loop or branch",
    ),
    (
        "lang-flag",
        "Kernels that run side by side do not agree about a flag.",
        "a kernel of cube cores and one of vector cores; post(f) in one of them, wait(f) in the "
        "other, as often, and not more than 15 posts ahead of the waits",
        "post once for each wait, and wait for an answer before running further ahead",
    ),
    # buffers
    (
        "lang-buffer-role",
        "A buffer plays more than one role.",
        "loaded and read, or written and stored, or scratch; or loaded and stored unchanged",
        "use a second buffer",
    ),
    (
        "lang-lifetime",
        "A buffer is used outside of its lifetime.",
        "loaded: from the copy_in stage to the end of the statement list that holds it, or the "
        "next load; stored: written and stored in one statement list (writes may be deeper)",
        "load again, or keep the value in a scratch buffer",
    ),
    (
        "lang-ub",
        "The buffers do not fit in the unified buffer.",
        "the sum of all buffers, each padded to 32 bytes, at most chip.ub_bytes",
        "make the tile length smaller, or reuse a scratch buffer",
    ),
    (
        "lang-memory",
        "An operation meets a buffer of another memory or another kind of core.",
        "load: GM to ub or l1, and l1 to l0a, l0b or bias_table; mmad: l0a and l0b to l0c; store: "
        "ub or l0c; a kernel has buffers of the unified buffer, or matrices of a cube core",
        "a kernel of its own for each kind of core, and a scratch tensor between them",
    ),
    (
        "lang-fractal",
        "A matrix, or the place where a part of one begins, is not whole fractals.",
        "rows and columns in multiples of 16, of 32 in int8 and int32, or one row in l1 and "
        "bias_table; in l0a, l0b and l0c at most 4095 of each; views of l0a and l0b from the first "
        "element on",
        "round the tile up: rows and columns behind those that are loaded cost nothing but room",
    ),
    (
        "lang-capacity",
        "The matrices do not fit in their memory.",
        "l1 512 KB, l0a and l0b 64 KB each, l0c 128 KB, bias_table 1 KB, copies included",
        "smaller tiles, or copies=1",
    ),
    (
        "lang-transpose",
        "A matrix in L0 is loaded both as it is and transposed.",
        "of float32 and int8 one way for each matrix: what is transposed lies differently",
        "a matrix for each way",
    ),
    (
        "lang-matrix",
        "A product takes another part of a matrix than was loaded.",
        "k as many columns as were loaded into l0a, n as many as into l0b, and accumulation with "
        "the m that c0 was begun with, in whole fractals",
        "give load() and mmad() the same sizes",
    ),
    (
        "lang-unused",
        "A buffer, tensor or parameter is never used.",
        "everything that is declared is used; a loaded buffer is read",
        "remove the declaration",
    ),
    (
        "lang-unwritten",
        "Something is needed that nothing writes.",
        "every element of an output is stored, every buffer that is read is written",
        "store it, or leave the output out",
    ),
    # ranges, known before a run or found in it
    (
        "lang-range",
        "An operation reaches outside of a buffer, or a count is negative.",
        "offset >= 0, count >= 0, offset + count at most the length (compare: count rounded up "
        "to whole 256-byte repeats)",
        "clamp the count with min(), or make the buffer longer",
    ),
    (
        "lang-align",
        "An operand does not start at a multiple of 32 bytes.",
        "buf[offset] with offset * bytes per element a multiple of 32",
        "use a buffer of its own, or a multiple of 32 bytes as offset",
    ),
    # only a run shows these
    (
        "lang-gm-range",
        "A copy reaches outside of a tensor.",
        "offset >= 0 and offset + count at most the tensor's size",
        "clamp the count with min()",
    ),
    (
        "lang-undefined-read",
        "Something is read that has no defined contents.",
        "elements that were loaded, computed or stored before, and not padding",
        "load, duplicate or compute the elements first, or make the count smaller",
    ),
    (
        "lang-race",
        "Two cores touch one element of a tensor, and nothing orders them.",
        "stores of different cores are disjoint or atomic; what another core stored is loaded "
        "after sync_cores()",
        "give every core its own range, or put sync_cores() in between",
    ),
    (
        "lang-overflow",
        "A number does not fit its type.",
        "ints of 64 bits; an int operand within the range of its buffer's dtype",
        "use floats, or smaller numbers",
    ),
    (
        "lang-divide",
        "An int is divided by zero, or aligned to less than one.",
        "a divisor other than 0; ceil_div and align_up by at least 1; a loop step of at least 1",
        "guard it with max(1, divisor)",
    ),
    (
        "lang-dim",
        "A tensor has no such dimension.",
        "x.shape[i] with -rank <= i < rank",
        "use x.size, or x.shape[-1]",
    ),
    (
        "lang-cores",
        "More cores are launched than the chip has.",
        "at most chip.vector_cores; fewer than 1 counts as 1",
        "min(work, chip.vector_cores)",
    ),
    (
        "lang-inputs",
        "The arrays handed to the interpreter do not fit the program.",
        "one array per input, one shape and dtype per output, of the declared dtypes",
        "compare them with the kernel's parameters",
    ),
    (
        "lang-queue",
        "A queue is in the wrong state.",
        "alloc, fill, enque, deque, read, free, in this order; as many at a time as the depth",
        "report it: the lowering wrote this",
    ),
)

# --- lower: tile program -> Ascend C project ------------------------------------------------------
_LOWER: list[Code] = _rows(
    "lower",
    (
        "lower-name",
        "A name is read that nothing assigns.",
        "tiling parameters, module constants, loop variables and variables assigned before",
        "run `npusmith check` on the tile program",
    ),
    (
        "lower-length",
        "A buffer's length is not known before the kernel runs.",
        "an expression of int literals and module constants, at least 1",
        "make the length a module constant and pass shorter counts at run time",
    ),
    (
        "lower-buffer-role",
        "A buffer plays more than one role.",
        "a buffer is loaded, or stored, or scratch; or loaded and stored again unchanged",
        "use a second buffer",
    ),
    (
        "lower-lifetime",
        "A buffer is not written and stored in one list of statements.",
        "the store of a buffer in the list of statements that writes it (writes may be deeper)",
        "move the copy_out stage next to the compute stage, or accumulate in a scratch buffer",
    ),
    (
        "lower-ub",
        "The buffers do not fit in the unified buffer.",
        "the sum of all buffers at most chip.ub_bytes, less 16 KB with a library function",
        "make the tile length smaller, or reuse a scratch buffer",
    ),
    (
        "lower-capacity",
        "The matrices do not fit in L1, L0A, L0B or L0C.",
        "l1 512 KB, l0a and l0b 64 KB each, l0c 128 KB, bias_table 1 KB, copies included",
        "smaller tiles, or copies=1",
    ),
    (
        "lower-queues",
        "More buffers than the chip has events for, or than one TPipe holds.",
        "at most 8 loaded buffers, 8 stored ones and 8 that are copied through; 64 in all",
        "load several pieces into one buffer, at different offsets",
    ),
    (
        "lower-loop-variable",
        "A loop variable is assigned in its loop, or read outside of it.",
        "a loop variable is read inside its loop only",
        "assign it to another variable first",
    ),
    (
        "lower-host",
        "An expression cannot be computed on the host.",
        "arithmetic on x.shape[i], x.size, chip facts, literals and names assigned before",
        "move it into the kernel",
    ),
    (
        "lower-port",
        "The ports of the operator are not the tensors of the kernel.",
        "one port for each input and output tensor, same name, order and dtype",
        "compare OpSpec with the kernel's parameters",
    ),
)

# --- task and sandbox: the PyTorch side -----------------------------------------------------------
_TASK: list[Code] = _rows(
    "task",
    (
        "sandbox-program",
        "A program that was to run in the sandbox is not on this machine.",
        "a program on PATH, or an absolute path",
        "install it, or run `npusmith doctor` to see what is missing",
    ),
    (
        "sandbox-folder",
        "A folder that the sandbox was to open for the program does not exist.",
        "existing folders",
        "create the folder first",
    ),
    (
        "sandbox-start",
        "The sandbox could not start the program.",
        "a program that this machine can execute",
        "run `npusmith doctor`; it names the layers that work here",
    ),
    (
        "task-file",
        "A task file is a folder, or cannot be read.",
        "a regular file that this user can read",
        "name the .py file itself",
    ),
    (
        "task-pickle",
        "A module or function of the calling program cannot be handed to the sandbox.",
        "what cloudpickle can save, at most 1 GiB with its inputs: no open files, locks or devices",
        "make the module without what cannot be saved, or write it as a task file",
    ),
    (
        "operator-wrong",
        "The operator that was generated for a call did not pass its judge.",
        "an operator whose verdict is pass: only such a one is called",
        "look at report.html in its folder",
    ),
    (
        "task-size",
        "A task file is too large.",
        "at most 1 MiB of Python text",
        "put data into get_inputs(), not into the text",
    ),
    (
        "task-encoding",
        "A task file is not UTF-8.",
        "UTF-8 text, with or without a byte order mark",
        "save the file as UTF-8",
    ),
    (
        "task-syntax",
        "A task file is not Python.",
        "what `python -m py_compile` accepts",
        "correct the line that is named",
    ),
    (
        "task-parts",
        "A task file lacks a part of the format.",
        "a class Model(nn.Module), get_inputs() and get_init_inputs() at module level; a class of "
        "another name is asked for as in nets.py:Block",
        "add the part that is named; docs/tasks.md has an example",
    ),
    (
        "torch-missing",
        "A package that runs tasks is not installed.",
        "PyTorch 2.6 or later, a CPU build is enough",
        "install a CPU build of torch; see README",
    ),
    (
        "task-raised",
        "The task's own code raised an exception.",
        "code that runs on the CPU without errors",
        "correct the line that is named",
    ),
    (
        "task-module",
        "The task imports a module that cannot be found.",
        "Python's own modules, torch, numpy, and what is installed beside npusmith",
        "install it in npusmith's environment, or copy what is needed of it into the task's file",
    ),
    (
        "task-denied",
        "The task's code was ended by what the sandbox does not allow.",
        "computing; no processes, no network, no files outside, no files beyond the size limit",
        "make the inputs with torch calls only",
    ),
    (
        "task-exited",
        "The task's code ended its own process.",
        "functions that return",
        "remove exit calls",
    ),
    (
        "task-crashed",
        "The task's process was ended by a signal.",
        "code that runs on the CPU without crashing",
        "run the task in plain PyTorch to see where it crashes",
    ),
    (
        "task-timeout",
        "The task's code did not return in time.",
        "to return within the time limit",
        "use smaller shapes",
    ),
    (
        "task-memory",
        "The task's code needed more memory than it may use.",
        "inputs, outputs and float64 copies within the memory limit",
        "use smaller shapes",
    ),
    (
        "task-disk",
        "Trials could not be written to disk.",
        "room for inputs, outputs and float64 outputs of every trial",
        "free some disk space, or use smaller shapes",
    ),
    (
        "task-inputs",
        "The inputs of the task are not tensors and numbers.",
        "a list or tuple of CPU tensors and numbers, of the same kinds on every call",
        "return a list of tensors",
    ),
    (
        "task-empty",
        "A tensor of the task has no elements.",
        "at least one element",
        "use shapes without zeros",
    ),
    (
        "task-outputs",
        "The model does not return tensors.",
        "a tensor, or a tuple or list of tensors",
        "return the tensors only",
    ),
    (
        "task-gradients",
        "The task has no gradients that an operator could give.",
        "a task with get_inputs, whose forward takes tensors alone and returns floating-point ones",
        "give numbers to the constructor; leave --backward out",
    ),
    (
        "task-dtype",
        "A tensor has an element type that the chip does not have.",
        "float32, float16, bfloat16, bool, int8 to int64, uint8 to uint32",
        "convert the tensor in the task, e.g. .float()",
    ),
    (
        "task-random",
        "The reference is not a function of its inputs.",
        "the same outputs for the same inputs, whatever the random state",
        "remove dropout and random numbers from forward()",
    ),
    (
        "task-export",
        "The model cannot be captured as a graph.",
        "what torch.export accepts: no control flow that depends on values",
        "rewrite the line that is named with tensor operations, or split the module there",
    ),
    (
        "task-prepare",
        "Preparing the task failed inside npusmith.",
        "-",
        "report this with the task file",
    ),
    (
        "task-result",
        "The sandboxed run left records that cannot be used.",
        "the records that npusmith itself writes",
        "run again; a task that writes into its work folder breaks itself",
    ),
)

# --- plan: what the deterministic writer can and cannot write -------------------------------------
_PLAN: list[Code] = _rows(
    "plan",
    (
        "plan-unsupported-op",
        "The deterministic writer has no rule for an operation, or for this form of it.",
        "the operations of docs/operations.md, most of them in every form",
        "split the module there and leave this to PyTorch, use other operations, or --writer agent",
    ),
    (
        "plan-backward",
        "An operator and that of its gradients do not make one module.",
        "a forward of named tensors, without tensors that it makes itself",
        "register what forward makes as buffers; use the two operators by themselves",
    ),
    (
        "plan-data-movement",
        "The plan writer does not support this way to move or combine elements.",
        "slices, joins, permutations, gathers, scatters, sorts and the like (docs/operations.md)",
        "leave this operation to PyTorch and generate the part after it, or --writer agent",
    ),
    (
        "plan-cube",
        "A matrix product is of a form that the compiler does not support on the cube unit.",
        "products of float16, bfloat16, float32 or int8 (`torch._int_mm`) tensors of one type, of "
        "which one of the two axes of each operand lies side by side in memory",
        "make the operand contiguous, or convert it; leave this operation to PyTorch and generate "
        "the parts before and after it, or --writer agent",
    ),
    (
        "plan-transpose",
        "Tensors of the graph hold the same axes in different memory orders.",
        "inputs and outputs with one common order of axes",
        "permute in PyTorch before or after the operator",
    ),
    (
        "plan-reshape",
        "A reshape joins or cuts axes in a way that no set of loops can express.",
        "reshapes that merge neighbouring axes or split an axis evenly",
        "reshape to sizes that divide each other",
    ),
    (
        "plan-repeated-axis",
        "One input would be read along the same loop in two of its dimensions.",
        "tensors whose dimensions run along different loops",
        "pass the tensor twice, as two inputs of forward",
    ),
    (
        "plan-mixed-reductions",
        "Reductions along different axes need each other's results within one row.",
        "reductions of which one finishes before the other begins",
        "split the module in two between the reductions",
    ),
    (
        "plan-dtype",
        "An element type cannot be computed with exactly on the vector cores.",
        "float32, float16, bfloat16, bool, and integers of 8 to 64 bits",
        "convert to float32 in the model, or split there and leave this to PyTorch",
    ),
    (
        "plan-index-output",
        "A result is used that the writer does not compute (indices, saved statistics).",
        "the values alone",
        "use torch.amax or torch.amin, or leave the indices to PyTorch",
    ),
    (
        "plan-ub",
        "So many intermediate tiles are alive at once that not even short tiles fit on chip.",
        "tiles of at least 256 elements within the chip's unified buffer",
        "split the module in two",
    ),
    (
        "plan-depth",
        "Too many operations follow one another for one kernel.",
        "400 in one kernel; a longer chain becomes several where its operations can be separated",
        "split the module, or loop over fewer steps in it",
    ),
    (
        "plan-length",
        "The tile program of a module would be longer than the language takes.",
        "at most 1048576 characters for all kernels together, 16000 in one statement",
        "generate the module in parts: a layer, a step of a loop",
    ),
    (
        "plan-queues",
        "More buffers are loaded, or stored, by one kernel than the chip has queues for.",
        "at most 8 loaded buffers and 8 stored ones",
        "fewer inputs or outputs in one module",
    ),
    (
        "plan-no-output",
        "The graph has no output to compute.",
        "a module that returns at least one tensor",
        "return a tensor from forward",
    ),
    (
        "plan-fixed-size",
        "The model's arithmetic holds the size of an input that the kernel does not read.",
        "sizes of inputs that the outputs follow from",
        "use the size of another input, or write the number out",
    ),
    (
        "plan-time",
        "A tile program could not be timed: its dry run did not come to an end.",
        "a program that ends within a minute when nothing is computed",
        "generate with --no-search, and look at what the run said",
    ),
    (
        "plan-schedule",
        "A schedule decides something that this program does not have, or not in this way.",
        "decisions and values that the writer has for the module",
        "leave the decision out, and the writer makes it; result.json has all of them",
    ),
    (
        "plan-schedule-file",
        "A file of a schedule cannot be read.",
        "JSON with graph, chip and schedule, or a result.json of npusmith generate",
        "take the file from an output folder of npusmith generate",
    ),
    (
        "plan-schedule-task",
        "The schedule was made for another task or another chip.",
        "a schedule of the same operations at the same shapes, for the same chip",
        "generate without --schedule, and keep the result.json of that",
    ),
)

# --- twin: building a project, and what a kernel did wrong when it ran ----------------------------
_TWIN: list[Code] = [
    *_rows(
        "twin",
        (
            "cube-tiling",
            "The TCubeTiling that a Matmul object got is not legal.",
            "base blocks that fit L0A, L0B and L0C, depth = step * stepK or twice that, all in L1",
            "let matmul_tiling::MatmulApiTiling or MultiCoreMatmulTiling compute it; check the "
            "fields that were set by hand",
        ),
        (
            "matmul-operand",
            "A Matmul object got an operand that does not fit it, or lacks one.",
            "SetTensorA and SetTensorB as MatmulType and tiling say; SetBias exactly with isBias",
            "compare with MatmulType, SetOrgShape, SetSingleShape and the host's EnableBias",
        ),
        (
            "matmul-order",
            "A call on a Matmul object comes without the call that must come before it.",
            "REGIST_MATMUL_OBJ, SetTensorA and SetTensorB, Iterate, GetTensorC, End",
            "add the call that is missing, or make it on the core that computes",
        ),
        (
            "mix-workspace",
            "A kernel with a Matmul object has no room for messages between its cores.",
            "GetLibApiWorkSpaceSize() bytes of workspace besides the user's own",
            "add PlatformAscendC::GetLibApiWorkSpaceSize() to GetWorkspaceSizes(1)[0]",
        ),
        (
            "tensor-empty",
            "An operation got a LocalTensor that owns no memory.",
            "a tensor from AllocTensor, DeQue, TBuf::Get or a constructor with an address",
            "allocate the tensor before it is used",
        ),
        (
            "position",
            "A vector operation or copy got a tensor that does not live in UB.",
            "VECIN, VECOUT or VECCALC",
            "declare the queue or buffer at VECIN, VECOUT or VECCALC",
        ),
        (
            "ub-align",
            "An operand in UB starts at an address that the hardware rejects.",
            "32-byte aligned addresses, except where the operation allows less",
            "start slices at multiples of 32 B, or copy the tail to an aligned buffer",
        ),
        (
            "ub-bounds",
            "An operation touches bytes outside its tensor or outside UB.",
            "count, mask, repeats and strides that stay inside the tensor",
            "shorten the last tile, or enlarge the buffer",
        ),
        (
            "stack-nested",
            "A tensor of PopStackBuffer is used after the same bytes were given out again.",
            "one PopStackBuffer at a time, after all InitBuffer",
            "finish with the first tensor, or make a TBuf for it",
        ),
        (
            "ub-capacity",
            "The buffers of InitBuffer do not fit UB.",
            "192 KB less 256 B in all",
            "use smaller tiles or fewer buffers",
        ),
        (
            "ub-reserved",
            "An API that keeps scratch at the top of UB ran while a buffer lay there "
            "(a warning when the buffer holds nothing there).",
            "buffers that end 8 KB below the top of UB",
            "leave the last 8 KB of UB free, or use Select with VSEL_CMPMASK_SPR",
        ),
        (
            "scratch-size",
            "An API found too little scratch memory.",
            "a scratch tensor of the documented size, or that much UB left over",
            "enlarge the scratch tensor, or make the tiles smaller",
        ),
        (
            "overlap",
            "Operands overlap in a way whose result the hardware does not define.",
            "destination and source identical or disjoint",
            "use separate buffers",
        ),
        (
            "param-range",
            "An argument does not fit the hardware's field or the documented range.",
            "the range in the API reference",
            "split the work into several calls",
        ),
        (
            "gm-bounds",
            "An access leaves the operator's global memory.",
            "bytes inside the inputs, outputs and workspace, and inside SetGlobalBuffer's size",
            "check offsets, the tail of the last core, and the length of the last tile",
        ),
        (
            "gm-readonly",
            "The kernel writes into an input or into the tiling data.",
            "writes into outputs and workspace",
            "check the order of the kernel's arguments: inputs, outputs, workspace, tiling",
        ),
        (
            "gm-align",
            "A copy starts at an address in global memory that is no multiple of the element size.",
            "addresses that are multiples of the element size",
            "check the byte offset, or use DataCopyPad",
        ),
        (
            "copy-length",
            "DataCopy was asked for a length that is not a multiple of 32 B; the rest is lost.",
            "length % 32 == 0",
            "pad the row, or use DataCopyPad",
        ),
        (
            "copy-pad",
            "The padding of DataCopyPad breaks a rule.",
            "padding of at most 32 B a side, isPad set where padding is not 0",
            "set isPad, or pad less",
        ),
        (
            "atomic-type",
            "A copy moves another type than the atomic mode was set for.",
            "SetAtomicAdd<T> with the T of the tensor",
            "set the atomic mode for the tensor's type",
        ),
        (
            "compare-length",
            "Compare got a count that does not fill whole 256-byte repeats.",
            "count * sizeof(T) % 256 == 0",
            "round the count up and pad the inputs",
        ),
        (
            "cast-mode",
            "Cast got a rounding mode that its pair of types does not have.",
            "the modes that the API reference lists for the pair",
            "use CAST_NONE to a wider type, CAST_RINT to a narrower one",
        ),
        (
            "gather-offset",
            "An offset of Gather points outside the source, or is not aligned to an element.",
            "byte offsets inside the source, multiples of the element size",
            "multiply indices by sizeof(T), and clamp them",
        ),
        (
            "queue-state",
            "A queue operation or an access does not fit the state of its buffer.",
            "AllocTensor, EnQue, DeQue, FreeTensor in this order, on one queue",
            "DeQue the tensor before it is read, and free it once on its own queue",
        ),
        (
            "queue-depth",
            "More tensors wait in a queue than its depth.",
            "at most `depth` EnQues before a DeQue",
            "DeQue earlier, or raise the depth in TQue<position, depth>",
        ),
        (
            "queue-leak",
            "A tensor of a queue is never given back (a warning when it was never handed on).",
            "one FreeTensor for each AllocTensor",
            "add the missing FreeTensor",
        ),
        (
            "queue-deadlock",
            "AllocTensor waits for a buffer that nobody will free.",
            "a free buffer at every AllocTensor",
            "free tensors inside the loop, or give InitBuffer more buffers",
        ),
        (
            "queue-buffers",
            "Queues have more buffers than the hardware has events.",
            "8 buffers in all at one position, 64 in a pipe",
            "merge queues, or use TBuf for scratch",
        ),
        (
            "pipe-twice",
            "Two TPipe objects live at the same time.",
            "one TPipe in a kernel",
            "pass a pointer to the first TPipe, or Destroy it before the second",
        ),
        (
            "pipe-missing",
            "GetTPipePtr was called before a TPipe was made.",
            "a TPipe that lives",
            "declare the TPipe first",
        ),
        (
            "event-pair",
            "SetFlag and WaitFlag do not come in pairs.",
            "one WaitFlag for each SetFlag, in that order, with the same event and id",
            "balance the flags on every path, and drain them at the end",
        ),
        (
            "event-none",
            "All event ids of a kind are in use.",
            "at most 8 ids of one HardEvent",
            "wait for flags, or release ids, before taking more",
        ),
        (
            "deadlock",
            "Cores wait for cores that will not come.",
            "every core passes each synchronisation the same number of times",
            "keep SyncAll out of branches that some cores skip, and do not return early",
        ),
        (
            "wrong-core",
            "An instruction runs on a kind of core that does not have its memory.",
            "vector instructions on AIV, cube instructions on AIC",
            "put the branch of each kind of core under if ASCEND_IS_AIV or if ASCEND_IS_AIC",
        ),
        (
            "cross-count",
            "A flag between cores is set more often than its counter can hold.",
            "at most 15 sets that nobody has waited for yet",
            "wait for flags in the loop that sets them, or shake hands both ways",
        ),
        (
            "sync-cores",
            "A kernel that synchronises all cores was launched with more blocks than cores.",
            "at most as many blocks as the chip has vector cores",
            "SetBlockDim with min(work, GetCoreNumAiv())",
        ),
        (
            "cross-mode",
            "CrossCoreSetFlag with a mode that needs cube cores, in a launch of vector cores only.",
            "mode 0",
            "use mode 0, or SyncAll",
        ),
        (
            "tiling-size",
            "The kernel's tiling struct is larger than what the host wrote.",
            "the same struct on both sides",
            "define the tiling struct once and include it from host and kernel",
        ),
        (
            "sort-unsorted",
            "A merge of sorted lists got a list that is not in descending order.",
            "lists that Sort32, Sort or an earlier merge has put in order",
            "sort each list first, and check that elementLengths ends where its order ends",
        ),
        (
            "tiling-shape",
            "A library function got tiling that was computed for another shape, or not at all.",
            "tiling from the host's function with the shape, type and mode of the kernel's call",
            "call the host's tiling function with what the kernel will pass",
        ),
        (
            "chip-lacks",
            "The kernel calls an API that this chip does not have.",
            "APIs that are documented for Atlas A2 (dav-2201)",
            "use the API that replaces it, or keep the branch for the other chip out of this build",
        ),
        (
            "kernel-assert",
            "An assertion of the kernel failed.",
            "conditions that hold",
            "look at the condition",
        ),
    ),
    *_warn(
        "twin",
        (
            "ub-top",
            "Buffers reach into the 256 B at the top of UB, which are the system's.",
            "192 KB less 256 B in all",
            "round each buffer's share of UB down to a multiple of 32 B",
        ),
        (
            "ub-size",
            "An operation touches bytes behind its tensor, inside the tensor's buffer.",
            "count, mask, repeats and strides that stay inside the tensor",
            "SetSize, or a larger count in Get, when the rest of the buffer is meant",
        ),
        (
            "gm-padding",
            "A copy reads past the end of a tensor, inside its rounded-up allocation.",
            "reads inside the tensor",
            "copy the tail with DataCopyPad",
        ),
        (
            "gm-size",
            "An access stays in the operator's memory but leaves what SetGlobalBuffer was told.",
            "bytes inside the size that SetGlobalBuffer was given",
            "check the length of the last tile, or give SetGlobalBuffer the true size",
        ),
        (
            "cross-pair",
            "A flag between cores is set and never waited for: it leaks into the next kernel.",
            "one CrossCoreWaitFlag for each completed CrossCoreSetFlag",
            "wait on every core that the flag reaches, on every path",
        ),
        (
            "divide-zero",
            "The kernel divides an integer by zero; what the chip answers is unknown.",
            "a divisor other than 0",
            "guard the division, or check what tiling sends",
        ),
        (
            "sticky-state",
            "A mode that outlives the kernel is still set when it ends.",
            "atomic mode off, normal mask mode, full mask",
            "SetAtomicNone, SetMaskNorm and ResetMask before the end",
        ),
    ),
]

# --- twin: order of accesses, and what memory holds ---------------------------------------------
_TWIN_ORDER: list[Code] = [
    *_rows(
        "twin",
        (
            "wild-pointer",
            "Device code touches, or jumps to, memory that is not the kernel's.",
            "its own stack and on-chip memory, its tensors, constants and functions",
            "use LocalTensor and GlobalTensor; look for an index or a pointer that runs away",
        ),
        (
            "global-write",
            "Device code writes a global or static variable.",
            "members of the kernel's class, local variables, workspace",
            "make it a member; what cores share goes into workspace",
        ),
        (
            "raw-pointer",
            "A kernel moves data through raw pointers instead of by copies and instructions.",
            "a few scalars; more than that by DataCopy and vector instructions",
            "DataCopy to UB, compute there, DataCopy back; the scalar unit takes one word a time",
        ),
        (
            "hazard",
            "Two pipes of a core touch the same bytes, and nothing makes the second wait.",
            "an event, a queue or a barrier between the two",
            "SetFlag and WaitFlag of the HardEvent named, or EnQue and DeQue",
        ),
        (
            "gm-race",
            "Two cores touch the same global memory, one of them writes, and nothing orders them.",
            "disjoint pieces for each core, atomics, or SyncAll in between",
            "check offsets and lengths of each core's share, above all of the last tile",
        ),
        (
            "uninit-read",
            "A value that was never written is used: as a result, an offset or a scalar.",
            "bytes that a copy, an instruction or SetValue has written",
            "copy or fill all of what is used: Duplicate first, or a smaller count",
        ),
        (
            "atomic-uninit",
            "An atomic copy accumulates onto global memory that nobody has written.",
            "memory that was cleared before",
            "InitOutput or SetInitValue, and SyncAll before the first accumulation",
        ),
    ),
    *_warn(
        "twin",
        (
            "hazard-barrier",
            "Two instructions of one pipe depend on each other without a PipeBarrier.",
            "PipeBarrier of that pipe in between",
            "overlapping copies and dependent vector instructions are not ordered by issue alone",
        ),
        (
            "gm-line",
            "Scalar writes of two cores fall into one 64-byte line and may undo each other.",
            "cores that write at least 64 B apart",
            "give each core lines of its own, or write through UB with DataCopyPad",
        ),
        (
            "gm-cache",
            "Global memory is read past the data cache, or out of a stale line of it.",
            "DataCacheCleanAndInvalid between scalar and other accesses",
            "clean after SetValue, invalidate before GetValue of what others wrote",
        ),
        (
            "padding-read",
            "Uninitialised DataCopyPad padding is read into a result.",
            "isPad with a neutral paddingValue, or a count without the padding",
            "set isPad and paddingValue to what the operation ignores: 0, -inf",
        ),
        (
            "mask-lost",
            "A vector mask was set and replaced before any instruction used it.",
            "SetVectorMask right before the instruction that takes it",
            "count forms reset the mask: set it after them",
        ),
    ),
    *_note(
        "twin",
        (
            "hazard-auto-sync",
            "A missing barrier that the compiler's auto-sync adds by itself.",
            "auto-sync on (the default), or an explicit event or barrier",
            "nothing, unless the project is compiled with --cce-auto-sync=off",
        ),
        (
            "slow-copy",
            "Many copies of few bytes: each pays the start of a transfer.",
            "16 KB and more a copy, starting at multiples of 512 B",
            "larger tiles, or one strided copy instead of a loop",
        ),
        (
            "slow-barrier",
            "PipeBarrier<PIPE_ALL> runs many times: it empties every pipe.",
            "events between the two pipes concerned",
            "SetFlag and WaitFlag, or queues",
        ),
        (
            "slow-scalar",
            "Many elements are read or written one at a time: each access waits for the pipes.",
            "vector instructions",
            "Duplicate, Gather, GatherMask, or copy the values as tiling data",
        ),
    ),
]

# --- twin, host side: reading, compiling and running a project ------------------------------------
_TWIN_HOST: list[Code] = [
    *_rows(
        "twin",
        (
            "project-missing",
            "The folder of the project does not exist.",
            "a folder with op_host/ and op_kernel/",
            "check the path",
        ),
        (
            "project-unreadable",
            "A source file of the project cannot be read as UTF-8 text.",
            "readable UTF-8 files of at most 16 MB",
            "check the file's mode and encoding",
        ),
        (
            "project-no-host",
            "The project has no host code.",
            "op_host/ with at least one .cpp",
            "generate the project with msopgen, or point at the folder that holds op_host/",
        ),
        (
            "project-no-kernel",
            "The project has no kernel code.",
            "op_kernel/ with at least one .cpp",
            "generate the project with msopgen, or point at the folder that holds op_kernel/",
        ),
        (
            "project-no-op",
            "The host code registers no operator.",
            "exactly one OP_ADD(Type)",
            "add OP_ADD(YourOp) after the OpDef class",
        ),
        (
            "project-two-ops",
            "The project holds more than one operator.",
            "one operator in a project, or --op NAME",
            "choose one with --op, or name the folder of one of them",
        ),
        (
            "build-option",
            "An option -I or -D cannot be used.",
            "-I FOLDER that is there; -D NAME or -D NAME=VALUE",
            "correct the option",
        ),
        (
            "debugger-missing",
            "There is no debugger that --gdb could use.",
            "gdb with Python, and a kernel that gives the sandbox a /proc of its own",
            "install gdb (Debian, Ubuntu: apt install gdb), or run without --gdb",
        ),
        (
            "project-no-entry",
            "The kernel entry cannot be found.",
            'one extern "C" __global__ __aicore__ void name(GM_ADDR ...) with a body',
            "define the entry, called like the operator in snake case",
        ),
        (
            "entry-name",
            "CANN's build makes the names of the kernel's file and entry from the OpDef type, and "
            "these are others.",
            "a capital starts a word, a digit does not: MaxPooling2dCustom is max_pooling2d_custom "
            "in max_pooling2d_custom.cpp",
            "rename the file and the entry, or the class in OpDef and OP_ADD",
        ),
        (
            "project-json",
            "The operator JSON is broken or describes another operator.",
            'a msopgen JSON whose "op" is the operator of OP_ADD',
            "correct the JSON, or remove it",
        ),
        (
            "launch-syntax",
            "A kernel launch cannot be read.",
            "kernel<<<blocks, dynamic_ub, stream>>>(arguments)",
            "write the launch as one expression",
        ),
        (
            "launcher-missing",
            "Which function of a direct-launch source launches the kernel is not clear.",
            "one function `void name_do(uint32_t blocks, void *stream, ...)`, or its name given",
            "name the launcher function",
        ),
        (
            "compiler-missing",
            "No C++ compiler was found.",
            "g++ or clang++ with C++17 on PATH, or NPUSMITH_CXX",
            "install g++, or set NPUSMITH_CXX to a compiler",
        ),
        (
            "cache-unusable",
            "The folder for compiled things cannot be written.",
            "a writable cache folder with some 100 MB free",
            "set NPUSMITH_CACHE to a folder that you may write, or free some space",
        ),
        (
            "toolchain-failed",
            "The twin's runtime could not be compiled.",
            "a compiler that knows C++17",
            "set NPUSMITH_CXX to g++ 9 or newer, or to clang++ 10 or newer",
        ),
        (
            "compile-failed",
            "The project does not compile.",
            "C++17 with the documented Ascend C API",
            "correct the first error; later ones often follow from it",
        ),
        (
            "compile-timeout",
            "The project took too long to compile.",
            "a compile of less than four minutes",
            "look for unbounded template recursion or very large constant tables",
        ),
        (
            "tiling-mismatch",
            "Host and kernel lay out the tiling data differently.",
            "the same fields, types and order on both sides",
            "define the struct once, in a header that both include",
        ),
        (
            "tiling-array",
            "The length of a tiling array is not known.",
            "a literal, or a constant defined in the project",
            "write the length as a number, constexpr or #define",
        ),
        (
            "tiling-unknown",
            "The struct that GET_TILING_DATA reads is not known.",
            "REGISTER_TILING_DEFAULT(T) in the kernel, or the project's host code beside it",
            "check the project's folder instead of the single file",
        ),
        (
            "tiling-template",
            "The instances of a kernel with template tiling cannot be told from its text.",
            "ASCENDC_TPL_ARGS_DECL, and ASCENDC_TPL_SEL with every argument in each selection",
            "write values as numbers or constants of the project",
        ),
        (
            "dtypes-mismatch",
            "The number of element types does not fit the operator.",
            "one type for each input and output of OpDef, in its order",
            "pass the types of all ports",
        ),
        (
            "output-count",
            "The operator does not have as many outputs as the reference.",
            "one output of the operator for each tensor that forward returns",
            "declare the missing outputs in OpDef, or drop the surplus",
        ),
        (
            "inputs-mismatch",
            "The tensors do not fit the operator's inputs and outputs.",
            "one tensor for each declared port; none for an absent OPTIONAL one; any number "
            "for DYNAMIC",
            "compare with the OpDef",
        ),
        (
            "load-failed",
            "A compiled project could not be loaded.",
            "host and kernel code without unresolved names",
            "define every function that the project declares and calls",
        ),
        (
            "run-failed",
            "A run could not be set up.",
            "readable inputs and enough memory for them",
            "look at what was seen; free memory or disk space",
        ),
        (
            "opdef-dtype",
            "The operator is not declared for these element types.",
            "a column of the DataType lists in OpDef",
            "add the types to every DataType list of the OpDef",
        ),
        (
            "opdef-init",
            "An output asks for an initial value that the twin cannot give.",
            "InitValue(0)",
            "let the kernel write the value",
        ),
        (
            "attr-missing",
            "A required attribute has no value.",
            "a value for each attribute without a default",
            "pass the attribute, or give it a default in OpDef",
        ),
        (
            "attr-unknown",
            "An attribute was given that the operator does not declare.",
            "the attributes of OpDef",
            "compare the names with the OpDef",
        ),
        (
            "attr-type",
            "An attribute's value is not of its declared type.",
            "Int, Float, Bool, String, or a list of Int, Float or Bool, as declared",
            "change the value, or the declaration",
        ),
        (
            "tiling-failed",
            "The host tiling function returned a failure.",
            "GRAPH_SUCCESS for every shape that the operator accepts",
            "read what it printed; check nulls and shapes in the tiling function",
        ),
        (
            "size-refused",
            "The operator refuses the sizes of the task's own inputs.",
            "sizes that meet the conditions in the operator's README and bindings.json",
            "generate the operator for this task, or judge it by the task that it was written for",
        ),
        (
            "kernel-differs",
            "One of several kernels stores other values than PyTorch has there; outputs are right.",
            "values within the tolerance between kernels, too",
            "look at that kernel: later ones may hide what is wrong on these inputs alone",
        ),
        (
            "rank-answered",
            "Inputs of another rank, which the model takes, were answered wrongly, not refused.",
            "a failure of the tiling function for a rank that is not served, or the right values",
            "check GetDimNum() of every input in the tiling function, or read GetShapeSize()",
        ),
        (
            "tiling-overflow",
            "The tiling data is larger than its buffer.",
            "at most 64 KB",
            "compute large tables in the kernel",
        ),
        (
            "block-dim",
            "The number of blocks is not one that a launch accepts.",
            "1 to 65535",
            "call context->SetBlockDim with at least 1, also for empty tensors",
        ),
        (
            "workspace-size",
            "Tiling asks for more workspace than this run may have.",
            "what fits into device memory, here into the memory of the run",
            "check the size computation for overflow and for uninitialised values",
        ),
        (
            "entry-arguments",
            "The kernel entry and the operator differ in the number of arguments.",
            "inputs, outputs, workspace, tiling, in this order",
            "match the entry's parameters with the OpDef",
        ),
        (
            "host-crash",
            "The project's host code crashed.",
            "host code that checks its pointers",
            "look for a null from GetInputShape, GetAttrPointer or GetTilingData",
        ),
        (
            "host-hang",
            "The project's host code did not end.",
            "tiling that ends for every shape",
            "look for a loop whose bound depends on a zero size",
        ),
        (
            "host-values",
            "Host code reads the elements of a tensor of floats, which are the kernel's.",
            "ValueDepend on integers that sizes follow from, or on 256 bytes of floats at most",
            "read the tensor in the kernel; drop ValueDepend from its declaration",
        ),
        (
            "kernel-crash",
            "The kernel crashed.",
            "accesses inside its tensors, no recursion, no exceptions",
            "look at the place named and at pointers used without LocalTensor or GlobalTensor",
        ),
        (
            "kernel-hang",
            "The kernel did not end in time.",
            "a kernel whose loops end",
            "look for a loop whose bound comes from tiling, and for a wait without its flag",
        ),
        (
            "kernel-memory",
            "The run needed more memory than it may have.",
            "host memory for inputs, outputs, workspace and 1 GB",
            "do not allocate in kernels; make the test smaller",
        ),
        (
            "gm-overrun",
            "The kernel wrote behind the end of a tensor in global memory.",
            "writes inside the tensor",
            "check the last core's tail; DataCopyPad is for lengths not a multiple of 32 B",
        ),
        (
            "project-link",
            "A file of the project is a link to somewhere else.",
            "plain files below the project's folder",
            "copy the file into the project",
        ),
        (
            "device-cpp",
            "Device code uses a part of C++ that AI cores do not have.",
            "no recursion, new, virtual functions, exceptions, RTTI, function pointers, IO, libm",
            "use templates and plain loops; take memory from TPipe; use vector instructions",
        ),
        (
            "cheat-platform",
            "The kernel asks what it is compiled with or on, or steps around the twin's checks.",
            "plain Ascend C, the same on the twin and on the chip",
            "remove the attribute, the builtin, the assembly or the macro of the compiler",
        ),
        (
            "format-syntax",
            "A submission is neither the Python nor the JSON that its format asks for.",
            "one Python file with six strings, or one JSON object with sources",
            "look at the line named; text around the code belongs into comments",
        ),
        (
            "format-part",
            "A part of a submission is missing or not of its kind.",
            "six plain strings; or sources with a path and a content each, one of them a binding",
            "compare with the format's description in docs/project.md",
        ),
        (
            "format-path",
            "A submission names a file outside of its own folder.",
            "relative names with / between plain parts",
            "name files as in kernel/add.cpp",
        ),
        (
            "cheat-compute",
            "The Python part computes with PyTorch instead of calling its kernel.",
            "allocation, views, casts and calls of the compiled module",
            "move the computation into the kernel",
        ),
        (
            "cheat-origin",
            "An output of the module is not what its launches wrote: it was computed beside them.",
            "outputs of launches, or views, slices, joins and casts of them",
            "return what the kernel writes; let the kernel do the rest of the work",
        ),
        (
            "cheat-input",
            "What goes into a launch was computed from the inputs outside of any launch.",
            "inputs, weights, results of earlier launches, and views and casts of these",
            "move the computation into the kernel; compute on weights in __init__ only",
        ),
        (
            "cheat-hidden",
            "The Python part uses what hides a computation: exec, hooks, a replaced forward.",
            "plain classes and functions, imports of torch and of the compiled module",
            "write the call of the compiled module out in forward",
        ),
        (
            "cheat-binding",
            "The binding computes with PyTorch instead of calling its kernel.",
            "allocation, views, shapes and EXEC_NPU_CMD",
            "move the computation into the kernel",
        ),
        (
            "cheat-alias",
            "An output is the memory of an input, handed back as it came; the reference makes one.",
            "outputs that the kernel has written; inputs stay as they are",
            "allocate the output, and let the kernel write all of it",
        ),
        (
            "binding-call",
            "A binding calls an aclnn function that no operator provides, or with other arguments.",
            "aclnn and the operator's type; inputs, attributes, outputs in the definition's order",
            "compare EXEC_NPU_CMD with the operator's Input, Attr and Output lines",
        ),
        (
            "binding-note",
            "The note beside a compiled binding is missing or damaged.",
            "<module>.json beside <module>.so, as npusmith bind writes both",
            "bind the project again, and keep the two files together",
        ),
        (
            "module-cube",
            "A direct launch from PyTorch uses cube cores, which the twin cannot run there yet.",
            "kernels of vector cores",
            "use an operator project, or a program with a main function",
        ),
        (
            "module-failed",
            "The Python part of a candidate raised, or gave something else than tensors.",
            "a ModelNew that is built and called like the task's Model",
            "run it by itself and read its error",
        ),
        (
            "module-outputs",
            "The candidate's outputs are not of the reference's number, shape or type.",
            "the structure, shapes and element types that the task's Model returns",
            "compare the allocation in the binding with the reference",
        ),
        (
            "launcher-arguments",
            "A launcher takes arguments that a task does not have.",
            "blocks, stream, inputs, outputs, workspace pointers, at most one element count",
            "give the source a main function that passes its own values, and leave out --task",
        ),
        (
            "program-missing",
            "A direct-launch source has no main function to run.",
            "int main() in the source, or --task with a launcher function",
            "name a task with --task, or add a main function that checks itself",
        ),
        (
            "program-outside",
            "A program opens a file outside of the folder that it runs in.",
            "paths below the source's folder, of which a copy is the working directory",
            "use ./input and ./output; keep what it reads beside it, or make it by --prepare",
        ),
        (
            "program-folder",
            "The folder of a program is too large to be copied for its run.",
            "at most 20000 entries and 2 GB beside the source, hidden ones not counted",
            "put the source and what it reads into a folder of their own",
        ),
        (
            "prepare-failed",
            "A command of --prepare failed, so the program was not run.",
            "commands that end with status 0, in the folder of the source",
            "try it in that folder; in the sandbox there is no network, and nothing outside",
        ),
        (
            "verify-failed",
            "A command of --verify is not content with what the program left.",
            "commands that end with status 0 and print of no failure",
            "read what it printed",
        ),
        (
            "verify-nothing",
            "A program wrote no file, so a command of --verify would judge old ones.",
            "a program that writes its results into files of its folder",
            "let the program write what the check reads",
        ),
        (
            "program-failed",
            "A direct-launch program ended with a failure of its own.",
            "main returns 0",
            "read what it printed",
        ),
        (
            "program-complains",
            "A direct-launch program ended well and printed that something failed.",
            "a program that returns another status than 0 when its own check fails",
            "read the line; --prepare makes data files, which belong into the folder of the source",
        ),
    ),
    *_warn(
        "twin",
        (
            "acl-uninit",
            "Host code copies device memory that neither it nor a kernel has written.",
            "what a kernel or aclrtMemcpy or aclrtMemset has written; new memory holds anything",
            "write all of it, or clear it with aclrtMemset",
        ),
        (
            "roof-beaten",
            "The kernel's time is below what any kernel for the task needs on this chip.",
            "times not below the memory's and the arithmetic's least, within the model's error",
            "look for work that is skipped, or done where the timing model does not see it",
        ),
        (
            "left-to-pytorch",
            "A part of the module is no kernel: PyTorch computes it, between the operators.",
            "a module that the compiler can write as a whole (docs/operations.md)",
            "look at the notes for the reason; --whole refuses such a module",
        ),
        (
            "parameters-fixed",
            "A class has other parameters than the reference, so it was judged on its own alone.",
            "parameters and buffers under the names and in the shapes of the task's Model",
            "name them as Model does, and compute what follows from them in forward",
        ),
        (
            "cheat-moved",
            "An output holds elements of an input that went through no launch.",
            "outputs that a launch has written",
            "let the kernel write the whole output",
        ),
        (
            "cheat-arithmetic",
            "The Python part uses arithmetic operators; on tensors that is computing with PyTorch.",
            "arithmetic on sizes only",
            "compute sizes in the binding, values in the kernel",
        ),
        (
            "opdef-soc",
            "The operator is not configured for this chip.",
            "AICore().AddConfig with the chip's family, e.g. ascend910b",
            "add the AddConfig line",
        ),
        (
            "tiling-missing",
            "The operator registers no tiling function; it ran on all vector cores.",
            "AICore().SetTiling(f) or IMPL_OP_OPTILING(Op).Tiling(f)",
            "register a tiling function that calls SetBlockDim",
        ),
        (
            "infer-shape",
            "InferShape does not give the shape that the run has.",
            "the shape of each output",
            "correct the InferShape function",
        ),
        (
            "infer-type",
            "InferDataType does not give the type that the run has.",
            "the element type of each output",
            "correct the InferDataType function",
        ),
    ),
    *_note(
        "twin",
        (
            "input-idle",
            "No output follows this input or parameter in any set: leaving it out goes unseen.",
            "a task in which every input and parameter counts",
            "change the task's values, or leave the input out of it",
        ),
    ),
]

# --- store: a run of a benchmark on disk ----------------------------------------------------------
_STORE: list[Code] = _rows(
    "store",
    (
        "run-missing",
        "The folder holds no run of a benchmark.",
        "a folder that `npusmith bench` wrote, with run.db in it",
        "check the path, or begin the run with `npusmith bench`",
    ),
    (
        "run-exists",
        "The folder already holds a run.",
        "--resume to go on with it, or a folder without a run",
        "add --resume, or name another folder with --out",
    ),
    (
        "run-changed",
        "The run was begun under other conditions, so its records would not compare.",
        "the suite, writer, limits, seed and npusmith that the run was begun with",
        "begin a new run with another --out, or restore what differs",
    ),
    (
        "run-empty",
        "The selection leaves nothing to run, or the run has no task yet.",
        "categories, levels and names that the suite has",
        "look at the names in the suite, or leave the selection out",
    ),
    (
        "store-newer",
        "A newer npusmith wrote this run.",
        "a run of this version or an older one, which is migrated",
        "use the npusmith that wrote it",
    ),
    (
        "store-damaged",
        "The run's file is not whole, or was changed by another program.",
        "a run.db that `npusmith report RUN --audit` finds whole",
        "restore it from a copy; its records cannot be trusted",
    ),
    (
        "store-busy",
        "Another process held the run's file for too long.",
        "runners that write in turn, on a local file system",
        "end the other process; never put a run on a network file system",
    ),
    (
        "extra-missing",
        "An optional package is not installed.",
        "the extra that the message names",
        "pip install 'npusmith[ray]' or 'npusmith[parquet]'",
    ),
    (
        "ray-failed",
        "The Ray cluster cannot be reached or used.",
        "an address of a running cluster, or local",
        "try `ray status` with the same address",
    ),
)

# --- train: the corpus, the reward ----------------------------------------------------------------
_TRAIN: list[Code] = _rows(
    "train",
    (
        "corpus-sample",
        "A line of a corpus holds no whole sample.",
        "lines that `npusmith train data` wrote, unchanged",
        "take the shard away and run `npusmith train data` again: it makes that one anew",
    ),
    (
        "reward-task",
        "The task cannot be rewarded as it was asked for.",
        "the path or the text of a task file, of shapes that the interpreter takes; else the twin",
        "Reward(route=Route.TWIN) takes tasks of any size",
    ),
    (
        "judge-request",
        "A request to the judge server cannot be read.",
        "JSON with task and completion, or lists of as many tasks as completions, of texts",
        "see docs/reward.md for the forms; a task is the text of a task file",
    ),
    (
        "corpus-shard",
        "A shard of a corpus was cut or changed.",
        "shards that `npusmith train data` wrote, each with its last line",
        "take the shard away and run `npusmith train data` again: it makes that one anew",
    ),
)

# --- knowledge: items, their files, their proofs --------------------------------------------------
_KNOWLEDGE: list[Code] = _rows(
    "knowledge",
    (
        "knowledge-file",
        "The file is no knowledge store of npusmith.",
        "a knowledge.db that `npusmith knowledge` made, or a name that is not taken",
        "name another file with --store",
    ),
    (
        "knowledge-damaged",
        "An item in the store cannot be read.",
        "items that this npusmith wrote",
        "restore the file from a copy, or export what is left and import it into a new store",
    ),
    (
        "knowledge-unknown",
        "The store has no item of that name.",
        "a name that `npusmith knowledge list --all` prints",
        "look at the list",
    ),
    (
        "knowledge-text",
        "A file of items does not say what an item is.",
        "TOML text with the keys of docs/knowledge.md; patterns whose holes are all bound",
        "compare it with what `npusmith knowledge export` writes",
    ),
    (
        "knowledge-pair",
        "Nothing can be learnt from these two kernels.",
        "two texts of one route, of which the second is accepted and differs in a few statements",
        "give the kernel right before the fix and right after it",
    ),
    (
        "knowledge-settled",
        "There is nothing to restore.",
        "an item that `npusmith knowledge settle` retired or narrowed, and whose proofs still hold",
        "look at its history with `npusmith knowledge show`",
    ),
)

# --- target, cli and files ------------------------------------------------------------------------
_HOUSE: list[Code] = _rows(
    "house",
    (
        "chip-unknown",
        "No chip of that name is in the table.",
        "a name that `npusmith doctor` lists",
        "use --chip 910B2",
    ),
    (
        "chip-file",
        "A key of a chip file is missing, unknown or not legal.",
        "what docs/chips.md lists for that key",
        'start from a known chip: base = "910B2", and change one key at a time',
    ),
    (
        "timing-log",
        "There is nothing to time: the run left no log.",
        "a candidate that compiles and launches a kernel",
        "look at what `npusmith run` says about the same candidate",
    ),
    (
        "timing-damaged",
        "What a run recorded cannot be timed: it is cut short, or no record of a launch.",
        "the file that a run of this version of npusmith wrote, whole",
        "run the kernel again with recording, and see that the disk is not full",
    ),
    (
        "timing-costs",
        "A constant of the timing model is missing, unknown or not legal.",
        "the names of npusmith/target/costs.py, with numbers of at least 0",
        "leave the constant out: the table has a value for each",
    ),
    (
        "timing-failed",
        "The timer did not come to an end.",
        "a log that fits into memory",
        "record fewer steps, and report this with the log",
    ),
    (
        "binding-unknown",
        "The operator's inputs cannot be matched with the task's inputs and parameters.",
        "as many operator inputs as the task has inputs, or inputs and parameters",
        "declare the inputs in OpDef in the order of forward, then the parameters",
    ),
    (
        "task-no-trials",
        "PyTorch's own module ran on none of the sets of inputs.",
        "a Model whose forward accepts what get_inputs returns",
        "run the task file by itself and read its error",
    ),
    (
        "tolerance-unknown",
        "No tolerance profile is called that.",
        "strict, multikernelbench, npukernelbench or cann-bench",
        "leave --tolerance out for the strictest that applies",
    ),
    (
        "file-missing",
        "A file or folder that was named does not exist.",
        "a path that exists and can be read",
        "check the path",
    ),
    (
        "option-denied",
        "A call to the server named an endpoint or a key that it was not started with.",
        "the base-url, the key-env and a litellm model of npusmith mcp --options",
        "leave it out, or start the server with it",
    ),
    (
        "file-denied",
        "The system refused to read or write a file or folder.",
        "a path that this user may read, and write where results go",
        "check its owner and mode, or name another folder with --out",
    ),
    (
        "file-unusable",
        "A file that was named is not text of a sane size, or has a name that is not.",
        "a plain UTF-8 file of at most 1 MB, under a path that is UTF-8 too",
        "check which file it is; convert it, or rename the folder",
    ),
    (
        "folder-foreign",
        "The folder for the results holds files that npusmith did not write.",
        "a folder that does not exist, is empty, or holds an earlier result of npusmith",
        "name another folder with --out, or move those files away",
    ),
    (
        "disk-full",
        "There was no room left to write a result; what was there before is untouched.",
        "enough free space, quota and file-size limit for the result",
        "free some space, or name a folder on another disk with --out",
    ),
    (
        "usage",
        "The command line could not be understood.",
        "what `npusmith COMMAND --help` lists",
        "compare with docs/cli.md",
    ),
    (
        "settings-file",
        "A file of default options cannot be used.",
        "TOML: options of all commands, and a table for each command with options of its own",
        "see Settings in docs/cli.md, or take the file away",
    ),
    (
        "interrupted",
        "Stopped by Ctrl-C or by a request to end; no half-written result was left.",
        "let the command finish",
        "start it again",
    ),
    (
        "internal",
        "npusmith itself failed: this is a defect of npusmith, not of your files.",
        "no command ends like this",
        "report it with the text above it and the file that caused it",
    ),
)

# --- agent: models, their replies, and what a run may spend ---------------------------------------
_AGENT: list[Code] = _rows(
    "agent",
    # reaching a model
    (
        "model-spec",
        "The model is not named in a way that can be reached.",
        "--model NAME with --base-url http(s)://HOST/v1, or scripted, scripted:FILE, litellm:NAME",
        "give --base-url of an OpenAI-compatible endpoint, up to and with /v1",
    ),
    (
        "model-key",
        "The endpoint wants a key, or refuses the one that it got.",
        "a key in the environment variable that --key-env names, NPUSMITH_API_KEY by default",
        "export the key; it is never stored and never printed",
    ),
    (
        "model-down",
        "Nothing answers at the endpoint's address.",
        "a server that listens at --base-url",
        "start it, check host and port; --resume goes on where the run stopped",
    ),
    (
        "model-slow",
        "The endpoint took too long.",
        "the first byte, and each further one, within --silence seconds",
        "raise --silence, or ask for fewer tokens; --resume goes on where the run stopped",
    ),
    (
        "model-busy",
        "The endpoint still refuses after all attempts (429 or 5xx).",
        "an endpoint with room for --concurrency calls at a time",
        "lower --concurrency, raise --attempts; --resume goes on where the run stopped",
    ),
    (
        "model-refused",
        "The endpoint does not accept the call.",
        "a model that the endpoint serves, at a URL up to and with /v1",
        "look at the endpoint's own words above; --resume goes on where the run stopped",
    ),
    (
        "model-context",
        "The call does not fit the model's context.",
        "prompt and --max-tokens together within the context of the model",
        "lower --max-tokens, or serve the model with a longer context",
    ),
    # what came back
    (
        "model-cut",
        "The answer broke off.",
        "a stream that ends with [DONE] or a finish reason",
        "answer again, in one piece and shorter",
    ),
    (
        "model-garbled",
        "The answer is not UTF-8 text in the form of the protocol.",
        "UTF-8, JSON or server-sent events of JSON",
        "answer again in plain text",
    ),
    (
        "model-empty",
        "The answer is empty.",
        "a text with one fenced block of code",
        "answer with the whole program in one fenced block",
    ),
    (
        "model-long",
        "The answer is longer than what is read.",
        "4 MB on the wire",
        "answer with the program alone",
    ),
    (
        "reply-no-code",
        "The answer holds no code.",
        "one fenced block with the whole program, or one for each file",
        "put the whole program between ``` and ```, and nothing else in the block",
    ),
    (
        "reply-language",
        "The code is of another language.",
        "what the task asks for: a tile program, or Ascend C in C++",
        "write it in the language whose reference the prompt holds",
    ),
    (
        "reply-part",
        "A file of the answer is missing, doubled, or has no usable name.",
        "one fenced block for each file, its path behind the opening fence: ```cpp op_kernel/x.cpp",
        "name each block with one of the paths that the task lists",
    ),
    (
        "reply-cut",
        "The answer reached the limit of tokens before its code ended.",
        "an answer within --max-tokens",
        "leave explanations out and write the program at once",
    ),
    (
        "reply-same",
        "The candidate is the text that was judged before.",
        "a candidate that differs in what the finding names",
        "change the line that the finding names, not its comments",
    ),
    (
        "reply-choice",
        "The answer is none of the choices that the question lists.",
        "exactly one of the listed lines, and nothing else",
        "look at the question with --dry-run; try another model",
    ),
    # what a candidate does wrong before the twin sees it
    (
        "agent-ports",
        "The kernel's tensors are not those of the task.",
        "inputs and outputs of the task under their names, in their order and with their types",
        "copy the signature from the task's list of tensors",
    ),
    (
        "agent-values",
        "The program computes other values than PyTorch.",
        "every output within the tolerance, on every set of inputs",
        "compare the formula with the module's forward, then the tail of the last tile",
    ),
    (
        "agent-endless",
        "The program was stopped: it ran too long, or took too much memory.",
        "loops that end, and scratch of about the tensors' size",
        "bound every loop by a size of the task",
    ),
    (
        "agent-none",
        "The run ended without a candidate that could be read.",
        "at least one answer with code",
        "look at the replies in the journal; try another model or more samples",
    ),
    # what a run may spend, and what it goes on from
    (
        "budget-zero",
        "A budget or a count is zero or negative.",
        "a positive number",
        "leave the option out for its default",
    ),
    (
        "budget-spent",
        "What is left of the budget does not pay for one more call.",
        "prompt and --max-tokens within what is left",
        "raise --budget-tokens or --budget-usd and --resume, or lower --max-tokens",
    ),
    (
        "prices-missing",
        "A budget in dollars needs prices.",
        "--price-prompt and --price-answer, dollars for a million tokens",
        "look them up at the provider, or use --budget-tokens",
    ),
    (
        "replay-missing",
        "The recording does not hold this call.",
        "a recording of the same task, options and version",
        "record again, or replay with the options of the recording",
    ),
    (
        "script-file",
        "The file is no script of the scripted model.",
        'JSON: {"rules": [{"contains": [...], "replies": [...]}]} (docs/agent.md)',
        "look at the place that is named",
    ),
    (
        "serve-port",
        "The server cannot listen on that port.",
        "a free port of this machine; 0 takes any",
        "use --port 0, or end what listens there",
    ),
)

# --- train: stages of training, and the model of our own -----------------------------------------
_STAGES: list[Code] = _rows(
    "train",
    (
        "train-config",
        "A setting of a stage of training cannot be used.",
        "the keys that docs/training.md lists, each with a value of its type",
        "look at the shipped files: src/npusmith/train/configs",
    ),
    (
        "train-empty",
        "Nothing is left to train on.",
        "samples of the split train that hold what the stage learns from and fit its length",
        "raise max_length, or look at the corpus",
    ),
    (
        "train-changed",
        "The folder holds a run that was told something else.",
        "the same settings, data, libraries, threads and processes as at its start",
        "name another folder with --out",
    ),
    (
        "train-model",
        "A checkpoint cannot be loaded.",
        "small, tiny, or a whole checkpoint of a causal model in the form of transformers",
        "look at what was seen; download the files again when one is cut off",
    ),
    (
        "lm-tokenizer",
        "A tokenizer is not the one that the model was trained with, or none of npusmith's.",
        "the tokenizer.json that training left beside the weights",
        "copy both files from one run",
    ),
    (
        "lm-weights",
        "A file of weights is cut off, damaged or of another form.",
        "the model.safetensors that npusmith train export writes",
        "export the checkpoint again, or copy the file again",
    ),
    (
        "lm-context",
        "The prompt leaves no room for an answer in the model's context.",
        "a prompt shorter than the context",
        "take a smaller task, or a model with a longer context",
    ),
)

# --- cann: building with an installed CANN, running on its devices --------------------------------
_CANN: list[Code] = _rows(
    "cann",
    (
        "cann-missing",
        "No CANN toolkit is installed, or its variable names no folder.",
        "a toolkit where ASCEND_HOME_PATH or ASCEND_TOOLKIT_HOME says, or in a default place",
        "install the CANN toolkit and source its set_env.sh; the twin needs none: npusmith run",
    ),
    (
        "cann-tools",
        "The installed CANN has no way to build an operator project, or a tool is missing.",
        "a toolkit with the CMake package ASC or with msopgen, and cmake",
        "install the whole toolkit, not the runtime alone; install cmake 3.16 or newer",
    ),
    (
        "cann-script",
        "The project lacks a script that is needed to build it or to call it.",
        "a project with build.sh, and with setup.py to be called from PyTorch",
        "write it with npusmith generate, or build it by hand",
    ),
    (
        "cann-build",
        "The project does not build with CANN.",
        "a build that ends with build_out/custom_opp_*.run",
        "read the log that is named; npusmith check names what the twin knows of it",
    ),
    (
        "device-missing",
        "This machine has no NPU, or its driver does not show one.",
        "a device node /dev/davinci0 or higher",
        "run npu-smi info; in a container, pass the device through",
    ),
    (
        "device-torch",
        "PyTorch on this machine cannot use the NPU.",
        "torch_npu for the installed torch, in the Python that runs npusmith",
        "install torch_npu, and check python -c 'import torch, torch_npu; torch.zeros(1).npu()'",
    ),
    (
        "device-run",
        "The program that calls the operator on the device ended without a result.",
        "a program that comes to its end within its time",
        "read what it printed; the twin names the place of a bad access: npusmith run",
    ),
    (
        "device-times",
        "The profiler left no time of the operator.",
        "a CSV of msprof with a row of the operator's type and a duration",
        "check that msprof is in PATH and that its output folder can be written",
    ),
)

CODES: dict[str, Code] = {
    row.name: row
    for row in (
        *_LANG,
        *_LOWER,
        *_TASK,
        *_PLAN,
        *_TWIN,
        *_TWIN_ORDER,
        *_TWIN_HOST,
        *_STORE,
        *_TRAIN,
        *_KNOWLEDGE,
        *_HOUSE,
        *_AGENT,
        *_STAGES,
        *_CANN,
    )
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was seen; every field may be absent."""

    file: str = ""
    line: int = 0
    function: str = ""
    core: int | None = None
    step: int | None = None

    def __str__(self) -> str:
        spot = f"{self.file}:{self.line}" if self.line else self.file
        spot = f"line {self.line}" if self.line and not self.file else spot
        parts = [spot, self.function]
        parts += [] if self.core is None else [f"core {self.core}"]
        parts += [] if self.step is None else [f"step {self.step}"]
        return ", ".join(part for part in parts if part)


class NpusmithError(Exception):
    """Base of every error that npusmith raises on purpose.

    `code` must be a key of CODES; `legal` and `hint` default to that row's text.
    """

    def __init__(
        self,
        code: str,
        message: str,
        place: Place | None = None,
        *,
        seen: str = "",
        legal: str = "",
        hint: str = "",
    ) -> None:
        row = CODES[code]
        self.code = code
        self.message = message
        self.place = place or Place()
        self.seen = seen
        self.legal = legal or row.legal
        self.hint = hint or row.hint
        super().__init__(self.render())

    def render(self) -> str:
        """The text a person reads: code and message, place, then legal and try."""
        lines = [f"error[{self.code}]: {self.message}"]
        where = str(self.place)
        if where or self.seen:
            lines.append("  " + ": ".join(part for part in (where, self.seen) if part))
        lines.append(f"  legal: {self.legal}      try: {self.hint}")
        return "\n".join(lines)

    def record(self) -> dict[str, object]:
        """The same as data, for --json."""
        return {
            "code": self.code,
            "message": self.message,
            "file": self.place.file,
            "line": self.place.line,
            "seen": self.seen,
            "legal": self.legal,
            "hint": self.hint,
        }


class LangError(NpusmithError):
    """A tile program is not legal."""


class LowerError(NpusmithError):
    """A legal tile program could not be lowered."""


class TaskError(NpusmithError):
    """A task file could not be loaded or run."""


class PlanError(NpusmithError):
    """The deterministic writer cannot write this graph."""


class SandboxError(NpusmithError):
    """A program could not be started in the sandbox."""


class TwinError(NpusmithError):
    """A project could not be built or run on the twin."""


class CannError(NpusmithError):
    """A project could not be built with CANN, or not run on a device."""
