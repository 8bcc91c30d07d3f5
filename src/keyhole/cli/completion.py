"""The command that prints what lets a shell complete commands, options and names.

All that can be completed is written into the script, so that a key pressed starts no program.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from keyhole.base.errors import check_choice
from keyhole.cli.exit_codes import one_sentence
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
"""Names that mean themselves in every shell."""
_OF_THE_SERVICE = ("simulate-users", "serve", "keys", "db")


@dataclass(frozen=True)
class Completed:
    """A command, what its options may be given, and what its first argument may be."""

    words: tuple[str, ...]
    summary: str
    options: dict[str, Sequence[str]]
    """The values by option, for those that are named; of the others there are none."""
    flags: frozenset[str]
    arguments: Sequence[str]
    helps: dict[str, str]


def completion_command(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.", metavar="SHELL")],
) -> None:
    """Print what lets a shell complete commands, options and names.

    Rankers, measures, worlds, surrogates and papers are completed by name. Print it once into a
    file that the shell reads at its start, and again after an upgrade:

        keyhole completion bash > ~/.local/share/bash-completion/completions/keyhole

        keyhole completion zsh > ~/.keyhole-completion.zsh    # to be sourced in ~/.zshrc

        keyhole completion fish > ~/.config/fish/conf.d/keyhole-completion.fish
    """
    with one_sentence():
        write = SHELLS[check_choice(shell, "SHELL", SHELLS)]
        context = typer.main.get_command(_app())
        sys.stdout.write("".join(f"{line}\n" for line in write(list(commands_of(context)))))


def _app() -> typer.Typer:
    """Return the whole command line, of which this file is a part."""
    from keyhole.cli.app import app

    return app


def commands_of(group: Any, above: tuple[str, ...] = ()) -> Iterator[Completed]:
    """Give the commands of a group, those of the groups within it after each."""
    for name, command in group.commands.items():
        words = (*above, name)
        within = getattr(command, "commands", {})
        takers = [each for each in command.params if each.opts[0].startswith("-")]
        options = {max(each.opts, key=len): each for each in takers if not each.hidden}
        yield Completed(
            words,
            _first_sentence(command.help),
            {
                option: _values(words, option)
                for option, each in options.items()
                if not getattr(each, "is_flag", False)
            },
            frozenset(option for option, each in options.items() if each.is_flag) | {"--help"},
            list(within) or _arguments(words),
            {option: _first_sentence(each.help) for option, each in options.items()},
        )
        if within:
            yield from commands_of(command, words)


def _first_sentence(text: str | None) -> str:
    return (text or "").strip().split("\n")[0]


def _plain(names: Any) -> list[str]:
    return [name for name in names if _PLAIN.fullmatch(name)]


def _rankers(words: tuple[str, ...]) -> list[str]:
    """Return the rankers that a command may name: of one list, of query-document lists, or all."""
    base = {"play": FixedListRanker, "learn": ContextualRanker}.get(words[0], object)
    return [name for name, cls in RANKERS.items() if issubclass(cls, base)]


def _values(words: tuple[str, ...], option: str) -> list[str]:
    """Return the names that an option may be given."""
    tables: dict[str, Callable[[], Any]] = {
        "--ranker": lambda: () if words[0] in _OF_THE_SERVICE else _rankers(words),
        "--rankers": lambda: _rankers(words),
        "--against": lambda: _rankers(words),
        "--subroutine": lambda: SUBROUTINES,
        "--surrogate": lambda: SURROGATES,
        "--measure": lambda: MEASURES,
        "--measures": lambda: MEASURES,
        "--world": lambda: WORLDS,
        "--reveal": lambda: REVEALS,
        "--missing": lambda: MISSING_RULES,
        "--format": lambda: FORMATS,
        "--comparator": lambda: ("prefix", "final"),
        "--method": lambda: ("auto", "enumeration", "rule"),
        "--ball": lambda: ("l1", "l2"),
    }
    return _plain(tables.get(option, lambda: ())())


def _arguments(words: tuple[str, ...]) -> list[str]:
    """Return the names that the first argument of a command may be."""
    tables: dict[str, Callable[[], Any]] = {
        "reproduce": list_studies,
        "advise": lambda: MEASURES,
        "classify": lambda: MEASURES,
        "completion": lambda: SHELLS,
    }
    return _plain(tables.get(words[0], lambda: ())())


def _bash(commands: list[Completed]) -> Iterator[str]:
    groups = "|".join(dict.fromkeys(each.words[0] for each in commands if len(each.words) > 1))
    top = " ".join(each.words[0] for each in commands if len(each.words) == 1)
    yield "# Completion of keyhole, as 'keyhole completion' printed it."
    yield "_keyhole() {"
    yield '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"'
    yield '    local command="${COMP_WORDS[1]}" options="" arguments="" values="" first=2'
    yield '    [[ $word == "=" ]] && word=""'
    yield '    [[ $before == "=" ]] && before="${COMP_WORDS[COMP_CWORD-2]}"'
    yield f'    (( COMP_CWORD == 1 )) && command="" && values="{top}" && options="--help --version"'
    if groups:
        yield f'    case "$command" in {groups})'
        yield '        (( COMP_CWORD > 2 )) && command="$command ${COMP_WORDS[2]}" && first=3 ;;'
        yield "    esac"
    yield '    case "$command" in'
    for each in commands:
        options = " ".join([*each.options, *sorted(each.flags)])
        yield f'        "{" ".join(each.words)}")'
        yield f'            options="{options}"'
        yield f'            arguments="{" ".join(each.arguments)}"'
        named = {option: values for option, values in each.options.items() if values}
        unnamed = "|".join(option for option, values in each.options.items() if not values)
        yield '            case "$before" in'
        for option, values in named.items():
            yield f'                {option}) values="{" ".join(values)}" ;;'
        if unnamed:
            # An empty reply leaves it to the shell, which completes files.
            yield f"                {unnamed}) COMPREPLY=(); return ;;"
        yield "            esac ;;"
    yield "    esac"
    yield '    if [[ $word == -* && -n $options ]]; then values="$options"'
    yield '    elif [[ -z $values ]] && (( COMP_CWORD == first )); then values="$arguments"; fi'
    yield '    COMPREPLY=($(compgen -W "$values" -- "$word"))'
    yield "}"
    yield "complete -o bashdefault -o default -F _keyhole keyhole"


def _zsh(commands: list[Completed]) -> Iterator[str]:
    yield "autoload -U +X compinit && compinit"
    yield "autoload -U +X bashcompinit && bashcompinit"
    yield from _bash(commands)


def _quoted(text: str) -> str:
    """Return text between quotes as fish reads it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish(commands: list[Completed]) -> Iterator[str]:
    yield "# Completion of keyhole, as 'keyhole completion' printed it."
    for each in commands:
        *above, name = each.words
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in above)
        when = seen or "__fish_use_subcommand"
        yield f"complete -c keyhole -f -n {_quoted(when)} -a {name} -d {_quoted(each.summary)}"
        own = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in each.words)
        for option, values in each.options.items():
            takes = f"-x -a {_quoted(' '.join(values))}" if values else "-r -F"
            told = f"-l {option.removeprefix('--')} {takes} -d {_quoted(each.helps[option])}"
            yield f"complete -c keyhole -n {_quoted(own)} {told}"
        for flag in sorted(each.flags):
            told = f"-l {flag.removeprefix('--')} -d {_quoted(each.helps.get(flag, ''))}"
            yield f"complete -c keyhole -n {_quoted(own)} {told}"
        if each.arguments:
            names = _quoted(" ".join(each.arguments))
            yield f"complete -c keyhole -n {_quoted(own)} -a {names}"


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
