"""The command that prints completion scripts for shells.

A script contains all completions, so that Tab starts no process. Typer's completion starts keyhole
at every Tab: 0.6 to 0.7 s of CPU time for commands that need Numba and for command names, 0.2 s for
others. These scripts take 0.001 s.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NamedTuple

import typer

from keyhole.base.errors import check_choice
from keyhole.cli.description_options import command
from keyhole.cli.rank import FORMATS
from keyhole.data.ratings import MISSING_RULES
from keyhole.lab.study import list_studies
from keyhole.measures import MEASURES
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.fixed.subroutines import SUBROUTINES
from keyhole.rankers.lists.base import ContextualRanker
from keyhole.reveals import REVEALS
from keyhole.surrogates import SURROGATES
from keyhole.worlds import WORLDS

_PLAIN = re.compile(r"[\w.+-]+", re.ASCII)
"""Names without special characters of any shell."""
_OF_THE_SERVICE = ("simulate-users", "keys")
_SHELLS = ("bash", "zsh", "fish")
_NAMES: dict[str, Iterable[str]] = {
    "--subroutine": SUBROUTINES, "--surrogate": SURROGATES, "--measure": MEASURES,
    "--measures": MEASURES, "--world": WORLDS, "--reveal": REVEALS, "--missing": MISSING_RULES,
    "--format": FORMATS, "--comparator": ("prefix", "final"), "--ball": ("l1", "l2"),
    "--method": ("auto", "enumeration", "rule"),
    "reproduce": list_studies(), "advise": MEASURES, "classify": MEASURES, "completion": _SHELLS,
}  # fmt: skip
"""The completions of options, and of the first argument of a command."""


class Completed(NamedTuple):
    """A command with the completions of its options and of its first argument."""

    words: tuple[str, ...]
    summary: str
    options: dict[str, list[str]]
    """The completions by option; options without an entry have none."""
    flags: list[str]
    arguments: list[str]
    helps: dict[str, str]


@command()
def completion_command(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.", metavar="SHELL")],
) -> None:
    """Print a completion script for a shell.

    The script completes commands, options, and the names of rankers, measures, worlds,
    surrogates and papers. Write it to a file that the shell reads at its start, again after each
    upgrade:

        keyhole completion bash > ~/.local/share/bash-completion/completions/keyhole

        keyhole completion zsh > ~/.keyhole-completion.zsh    # source it in ~/.zshrc

        keyhole completion fish > ~/.config/fish/conf.d/keyhole-completion.fish
    """
    from keyhole.cli.app import app  # a circular import otherwise

    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[check_choice(shell, "SHELL", _SHELLS)]
    found = list(commands_of(typer.main.get_command(app)))
    sys.stdout.write("".join(f"{line}\n" for line in write(found)))


def commands_of(group: Any, above: tuple[str, ...] = ()) -> Iterator[Completed]:
    """Yield the commands of a group and, recursively, of its subgroups."""
    for name, each in group.commands.items():
        words, within = (*above, name), getattr(each, "commands", {})
        options = {
            max(one.opts, key=len): one
            for one in each.params
            if one.param_type_name == "option" and not one.hidden
        }
        yield Completed(
            words,
            _first_line(each.help),
            {name: _names(words[0], name) for name, one in options.items() if not one.is_flag},
            sorted({name for name, one in options.items() if one.is_flag} | {"--help"}),
            list(within) or _names(name, name),
            {option: _first_line(one.help) for option, one in options.items()},
        )
        yield from commands_of(each, words) if within else ()


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n")[0]


def _names(command: str, what: str) -> list[str]:
    """Return the completions of an option, or of the argument of a command."""
    names = _NAMES.get(what, ())
    if what in ("--ranker", "--rankers", "--against") and command not in _OF_THE_SERVICE:
        base = {"play": FixedListRanker, "learn": ContextualRanker}.get(command, object)
        names = [name for name, kind in RANKERS.items() if issubclass(kind, base)]
    return [name for name in names if _PLAIN.fullmatch(name)]


_BASH = """\
# Completion of keyhole, as 'keyhole completion' printed it.
_keyhole() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"
    local command="${COMP_WORDS[1]}" options="" arguments="" values="" first=2
    COMPREPLY=()
    [[ $word == "=" ]] && word=""
    [[ $before == "=" ]] && before="${COMP_WORDS[COMP_CWORD-2]}"
    (( COMP_CWORD == 1 )) && command="" && values="TOP" && options="--help --version"
    if [[ " GROUPS " == *" $command "* ]] && (( COMP_CWORD > 2 )); then
        command="$command ${COMP_WORDS[2]}"; first=3
    fi
    case "$command" in
COMMANDS
    esac
    case "$command $before" in
VALUES
    esac
    if [[ $word == -* && -n $options ]]; then values="$options"
    elif [[ -z $values ]] && (( COMP_CWORD == first )); then values="$arguments"; fi
    COMPREPLY=($(compgen -W "$values" -- "$word"))
}
complete -o bashdefault -o default -F _keyhole keyhole"""


def _bash(commands: list[Completed]) -> Iterator[str]:
    rows, values = [], []
    for each in commands:
        name = " ".join(each.words)
        options = " ".join([*each.options, *each.flags])
        rows.append(f'    "{name}") options="{options}" arguments="{" ".join(each.arguments)}" ;;')
        for option, named in each.options.items():
            # With an empty reply the shell completes files.
            then = f'values="{" ".join(named)}"' if named else "return"
            values.append(f'    "{name} {option}") {then} ;;')
    script = _BASH.replace("COMMANDS", "\n".join(rows)).replace("VALUES", "\n".join(values))
    groups = dict.fromkeys(each.words[0] for each in commands if len(each.words) > 1)
    top = " ".join(each.words[0] for each in commands if len(each.words) == 1)
    yield script.replace("GROUPS", " ".join(groups)).replace("TOP", top)


def _zsh(commands: list[Completed]) -> Iterator[str]:
    yield "autoload -U +X compinit && compinit"
    yield "autoload -U +X bashcompinit && bashcompinit"
    yield from _bash(commands)


def _quoted(text: str) -> str:
    """Return text quoted for fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish(commands: list[Completed]) -> Iterator[str]:
    yield "# Completion of keyhole, as 'keyhole completion' printed it."
    for each in commands:
        *above, name = each.words
        seen = [f"__fish_seen_subcommand_from {word}" for word in each.words]
        when = "; and ".join(seen[:-1]) if above else "__fish_use_subcommand"
        yield f"complete -c keyhole -f -n {_quoted(when)} -a {name} -d {_quoted(each.summary)}"
        own = f"complete -c keyhole -n {_quoted('; and '.join(seen))}"
        for option in (*each.options, *each.flags):
            values = each.options.get(option)
            takes = f" -x -a {_quoted(' '.join(values))}" if values else " -r -F" * (values == [])
            yield f"{own} -l {option[2:]}{takes} -d {_quoted(each.helps.get(option, ''))}"
        if each.arguments:
            yield f"{own} -a {_quoted(' '.join(each.arguments))}"
