"""Kernels that call kernels, optimised and turned into machine code once.

Numba compiles every function for itself: what a kernel calls is linked into it, optimised and
emitted once more at every level of calls, with wrappers that let Python call it. Here a kernel
that another one calls stays what the front end made of it (an *inner* kernel); only what Python
calls is linked, with all that it calls, optimised and emitted (a *whole* program). Both are kept
on disk, so that programs share the work of the front end.

This rests on parts of Numba that are its own: importing this module fails where a version lacks
them, and :mod:`keyhole.kernels.compiled` then lets Numba compile in its own way.
"""

import os
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import compiler, event, sigutils
from numba.core.caching import _Cache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder, _LowerResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
from numba.core.typing.templates import make_concrete_template

from keyhole.kernels.code_cache import (
    LOCKS,
    CodeKey,
    check_may_compile,
    described,
    has_code,
    has_foreign_types,
    number_functions_apart,
    number_next_function,
    read_code,
    write_code,
)
from keyhole.kernels.shipped import baseline_target
from keyhole.kernels.stamps import stamp_of

number_functions_apart()
if hasattr(os, "register_at_fork"):  # a forked process would go on with its parent's numbers
    os.register_at_fork(after_in_child=number_functions_apart)


def _defined(module: Any, *linkages: str) -> Iterator[Any]:
    """Yield the functions that a module defines with one of some linkages."""
    wanted = [getattr(llvm.Linkage, name) for name in linkages]
    for function in module.functions:
        if not function.is_declaration and function.linkage in wanted:
            yield function


class _InnerLibrary(JITCodeLibrary):
    """The code of a kernel that others call: never optimised nor emitted by itself."""

    key: CodeKey | None = None
    bitcode: bytes

    def finalize(self) -> None:
        self._finalized = True
        callees = list(dict.fromkeys(self._linking_libraries))
        self._linking_libraries = [each for each in callees if isinstance(each, _InnerLibrary)]
        for each in callees:
            if not isinstance(each, _InnerLibrary):  # a helper of Numba's
                self._final_module.link_in(each._get_module_for_linking(), preserve=True)
        # Weak: LLVM's linker drops what may be dropped and is not called yet, so that the order of
        # linking would matter.
        for function in _defined(self._final_module, "external", "linkonce_odr"):
            function.linkage = "weak_odr"
        self.bitcode = self._final_module.as_bitcode()  # a tenth of the memory of the module
        self._final_module = None

    def module(self) -> Any:
        """Return the code as a module of its own, to be linked once."""
        return llvm.parse_bitcode(self.bitcode)

    def _get_module_for_linking(self) -> Any:
        """Return the code with all that it calls, for what Numba compiles in its own way."""
        together = self.module()
        for each in _with_callees(self._linking_libraries):
            own = each.module() if isinstance(each, _InnerLibrary) else None
            together.link_in(own or each._get_module_for_linking(), preserve=own is None)
        for function in _defined(together, "weak_odr"):
            function.linkage = "linkonce_odr"
        return together

    @classmethod
    def load(cls, codegen: Any, name: str, bitcode: bytes, callees: list[Any]) -> Any:
        self = cls(codegen, name)
        self.bitcode, self._final_module = bitcode, None
        self._linking_libraries = callees
        self._finalized = True
        return self


def _with_callees(libraries: list[Any]) -> Iterator[Any]:
    seen, waiting = set(), list(libraries)
    while waiting:
        library = waiting.pop()
        if library not in seen:
            seen.add(library)
            yield library
            if isinstance(library, _InnerLibrary):
                waiting.extend(library._linking_libraries)


class _WholeLibrary(JITCodeLibrary):
    """The code of a function that Python calls, and of everything it calls."""

    code: bytes | None = None
    _names: list[str]

    def finalize(self) -> None:
        libraries = list(_with_callees(self._linking_libraries))
        self._linking_libraries = [
            each for each in libraries if not isinstance(each, _InnerLibrary)
        ]
        for each in libraries:
            if isinstance(each, _InnerLibrary):
                self._reload_init.update(each._reload_init)
                self._final_module.link_in(each.module())
        super().finalize()

    def _finalize_final_module(self) -> None:
        """Emit machine code and load it as if from disk: the module would stay in memory."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        defined = [each.name for each in self._final_module.functions if not each.is_declaration]
        self._names = defined
        self.code = self._codegen._tm.emit_object(self._final_module)
        self._final_module = llvm.parse_assembly("")
        self._final_module.name = self.name
        self._set_compiled_object(self.code)
        super()._finalize_final_module()
        self._codegen._engine._load_defined_symbols(self._stub())

    def _optimize_final_module(self) -> None:
        for function in _defined(self._final_module, "weak_odr"):
            function.linkage = "linkonce_odr"  # what is inlined everywhere is dropped
        for function in self._final_module.functions:
            if function.is_declaration and function.name.startswith("_ZN7keyhole"):
                raise RuntimeError(f"The code of {function.name} is missing.")
        # What unpacks the arguments of a call from Python waits for Python: optimised it takes as
        # long to run, and a tenth of all optimising.
        for function in _defined(self._final_module, "external"):
            if function.name.startswith("_ZN7cpython"):
                function.add_function_attribute("noinline")
                function.add_function_attribute("optnone")
        # Numba's cheaper passes before these are there for counting references: kernels do not.
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)
        # What was not inlined is this program's own: no other that is loaded calls it, or is called
        # in its place.
        for function in _defined(self._final_module, "linkonce_odr"):
            function.linkage = "internal"

    def _stub(self) -> Any:
        """Return a module that defines the names of the functions, and nothing else."""
        text = "\n".join(f'define void @"{name}"() {{ ret void }}' for name in self._names)
        return llvm.parse_assembly(text)

    def serialize_using_object_code(self) -> tuple[Any, ...]:
        """Return the machine code, and in place of code to link with, which nobody does, names."""
        return self.name, "object", (self.code, self._stub().as_bitcode())


def _stand_in() -> Callable[[], None]:
    """Return what stands for an inner kernel where Numba looks up who is called."""

    def entry() -> None:
        raise NotImplementedError

    return entry


@register_pass(mutates_CFG=True, analysis_only=False)
class _WholeLowering(NativeLowering):
    _name = "keyhole_whole_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _WholeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _InnerLowering(NativeLowering):
    _name = "keyhole_inner_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        state.library.finalize()
        entry = _stand_in()
        state.targetctx.insert_user_function(entry, lowered.fndesc, [state.library])
        state["cr"] = _LowerResult(
            lowered.fndesc, lowered.call_helper, cfunc=entry, env=lowered.env
        )
        return True


class _Compiler(CompilerBase):
    lowering: Any

    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes[:] = [
            (self.lowering if each is NativeLowering else each, text)
            for each, text in manager.passes
        ]
        return [manager]


class _WholeCompiler(_Compiler):
    lowering = _WholeLowering


class _InnerCompiler(_Compiler):
    lowering = _InnerLowering


class _Inner:
    """What is known of an inner kernel: the types of a call, and the code to link."""

    def __init__(self, signature: Any, entry: Callable[[], None], library: Any) -> None:
        self.signature, self.entry, self.library = signature, entry, library


_loaded: dict[CodeKey, Any] = {}
"""Libraries of inner kernels that were read from disk, so that each is read once."""


def _load_library(key: CodeKey, codegen: Any) -> tuple[Any, Any, Any] | None:
    """Return a kernel's library with those it calls, its descriptor and its signature."""
    if key in _loaded:
        return _loaded[key]
    payload = read_code(key)
    if payload is None:
        return None
    name, bitcode, descriptor, signature, callee_keys = payload
    callees = []
    for each in callee_keys:
        found = _load_library(CodeKey(*each), codegen)
        if found is None:
            return None
        callees.append(found[0])
    library = _InnerLibrary.load(codegen, name, bitcode, callees)
    library.key = key
    _loaded[key] = library, descriptor, signature
    return _loaded[key]


class Program(_Cache):
    """A compiled function: a whole program for Python, an inner kernel for others.

    It takes the place of Numba's cache in a dispatcher, and of the methods by which others call it.
    """

    native_only = False
    """Whether code for the baseline processor is passed over, in all programs of this process."""

    def __init__(self, dispatcher: Any, identity: str | None) -> None:
        self._dispatcher = dispatcher
        self.identity = identity
        self.on_baseline: set[tuple[Any, ...]] = set()
        """Signatures for which code for the baseline processor was loaded."""
        self._retired: list[Any] = []
        self._inner: dict[Any, _Inner] = {}
        self._compile = dispatcher.compile
        dispatcher._cache = self
        dispatcher.compile = self.compile
        dispatcher.get_call_template = self.get_call_template
        dispatcher.get_overload = self.get_overload

    @cached_property
    def _stamp(self) -> str | None:
        return stamp_of(self._dispatcher.py_func, self._dispatcher.targetoptions)

    def _key(self, args: Any, *, target: str) -> CodeKey | None:
        """Return what the code for some arguments is kept under, if it can be kept."""
        args = tuple(args)
        if self.identity is None or has_foreign_types(args) or self._stamp is None:
            return None
        return CodeKey(
            self._dispatcher.py_func.__name__, self.identity, self._stamp, described(args), target
        )

    def _whole_key(self, sig: Any) -> CodeKey | None:
        args, _ = sigutils.normalize_signature(sig)
        return self._key(args, target=repr(self._dispatcher.targetctx.codegen().magic_tuple()))

    def _baseline_key(self, native: CodeKey) -> CodeKey | None:
        """Return what code for the baseline processor is kept under, where the host can run it."""
        target = baseline_target(self._dispatcher.targetctx.codegen().magic_tuple()[0])
        return None if target is None else native._replace(target=repr(target))

    # ------------------------------------------------------------ as Python calls it

    def compile(self, sig: Any) -> Any:
        """Compile a whole program, unless another process is at it: then wait for it."""
        with global_compiler_lock:
            args, _ = sigutils.normalize_signature(sig)
            key = self._whole_key(sig)
            if key is None or tuple(args) in self._dispatcher.overloads:
                return self._compile(sig)
            baseline = self._baseline_key(key)
            if has_code(key) or (baseline is not None and has_code(baseline)):
                return self._compile(sig)
            check_may_compile(self._dispatcher.py_func.__qualname__)  # before waiting for others
            with LOCKS.held(key):
                entry = self._compile(sig)
            # What the front end knew of it takes megabytes, and only inspect_types() would ask.
            result = self._dispatcher.overloads[tuple(args)]
            self._dispatcher.overloads[tuple(args)] = result._replace(type_annotation=None)
            return entry

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        args, _ = sigutils.normalize_signature(sig)
        native = self._whole_key(sig)
        payload = None if native is None else read_code(native)
        if payload is None and native is not None and not self.native_only:
            baseline = self._baseline_key(native)
            payload = None if baseline is None else read_code(baseline)
            if payload is not None:
                self.on_baseline.add(tuple(args))
        if payload is None:
            check_may_compile(self._dispatcher.py_func.__qualname__)
            return None
        target_context.refresh()
        return CompileResult._rebuild(target_context, *payload)

    def take_native(self, args: tuple[Any, ...]) -> bool:
        """Call native code from now on where code for the baseline was loaded; False: none yet."""
        own = self._dispatcher
        with global_compiler_lock:
            key = self._whole_key(args)
            payload = None if key is None else read_code(key)
            if payload is None:
                return False
            native = CompileResult._rebuild(own.targetctx, *payload)
            before = dict(own.overloads)
            self._retired.append(before[args])  # other threads may be running it
            own._reset_overloads()
            for result in {**before, args: native}.values():
                own.add_overload(result)
            self.on_baseline.discard(args)
        return True

    def save_overload(self, sig: Any, data: Any) -> None:
        key = self._whole_key(sig)
        if key is not None and not data.library.has_dynamic_globals and not data.lifted:
            write_code(key, data._reduce())
            data.library.code = None

    # ------------------------------------------------------------ as other kernels call it

    def _compile_inner(self, args: tuple[Any, ...]) -> _Inner:
        own = self._dispatcher
        key = self._key(args, target="inner")
        found = None if key is None else self._load_inner(key)
        if found is not None:
            return found
        flags: Any = compiler.Flags()
        own.targetdescr.options.parse_as_flags(flags, own.targetoptions)
        flags.no_cpython_wrapper = True
        details = {"dispatcher": own, "args": args, "return_type": None}
        if key is not None:
            number_next_function(key)
        with own._compiling_counter, event.trigger_event("numba:compile", data=details):
            result = compiler.compile_extra(
                own.typingctx, own.targetctx, own.py_func, args=args, return_type=None,
                flags=flags, locals=own.locals, pipeline_class=_InnerCompiler,
            )  # fmt: skip
        library = result.library
        if key is not None and not result.reload_init:
            self._keep_inner(key, result)
        return _Inner(result.signature, result.entry_point, library)

    def _load_inner(self, key: CodeKey) -> _Inner | None:
        target = self._dispatcher.targetctx
        found = _load_library(key, target.codegen())
        if found is None:
            return None
        library, descriptor, signature = found
        entry = _stand_in()
        target.insert_user_function(entry, descriptor, [library])
        return _Inner(signature, entry, library)

    def _keep_inner(self, key: CodeKey, result: Any) -> None:
        callees = [each.key for each in result.library._linking_libraries]
        if any(each is None for each in callees):
            return
        result.library.key = key
        descriptor = result.fndesc
        descriptor.typemap = descriptor.calltypes = None  # not needed, and not to be pickled
        write_code(
            key,
            (
                result.library.name,
                result.library.bitcode,
                descriptor,
                result.signature,
                [tuple(each) for each in callees],
            ),
        )

    def get_call_template(self, args: Any, kws: Any) -> Any:
        own = self._dispatcher
        pysig, args = own._compiler.fold_argument_types(args, kws)
        args = tuple(args)
        if args not in self._inner:
            key = self._key(args, target="inner")
            if key is None or has_code(key):
                self._inner[args] = self._compile_inner(args)
            else:
                with LOCKS.held(key):
                    self._inner[args] = self._compile_inner(args)
        name = own.py_func.__name__
        signatures = [each.signature for each in self._inner.values()]
        template = make_concrete_template(f"CallTemplate({name})", name, signatures)
        return template, pysig, args, {}

    def get_overload(self, sig: Any) -> Any:
        args, _ = sigutils.normalize_signature(sig)
        return self._inner[tuple(args)].entry

    # ------------------------------------------------------------ what else Numba asks of a cache

    @property
    def cache_path(self) -> None:
        return None

    def enable(self) -> None: ...
    def disable(self) -> None: ...
    def flush(self) -> None: ...


def compile_program(
    function: Callable[..., Any], identity: str | None, flags: dict[str, Any]
) -> Any:
    """Compile a function; ``identity`` names it in every process, if it may be kept on disk."""
    options: dict[str, Any] = {**flags, "no_cfunc_wrapper": True, "pipeline_class": _WholeCompiler}
    compiled = numba.njit(**options)(function)
    if isinstance(compiled, numba.core.dispatcher.Dispatcher):  # not with NUMBA_DISABLE_JIT
        Program(compiled, identity)
    return compiled
