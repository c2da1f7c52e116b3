"""The command ``firefly-memory``.

To add a command, write one file and one line:

1. The file is ``commands/NAME.py``. It has one function::

       @command(examples=["firefly-memory ls --url sqlite:///memory.db"], exits=OF_A_STORE)
       @store_options()
       @json_option
       def ls(where: Where) -> None:
           from firefly_memory.target import reading

           with reading(where.target(), timeout=where.timeout) as store:
               rows = [(name, store.count(name)) for name in store.namespaces()]
           show_table({"namespaces": dict(rows)}, [Column("namespace"), Column("entries", align="right")], rows)

2. The line is in the table ``COMMANDS`` of :mod:`firefly_memory.cli.commands`. It has the name, the function, and the
   words that the help shows; ``"db ls"`` is a command in the group ``db``.

What is slow to load (SQLAlchemy, pydantic, a store) is imported inside the function: the help and the completion of the
command load its file. The tests of ``tests/cli/test_every_command.py`` check each line of the table.

The vocabulary:

* :mod:`~firefly_memory.cli.command`: ``@command``, ``@argument``, ``@option`` and ``@flag``. The exit codes in the help
  are those that the command names; ``OF_A_STORE`` are those of a command that opens a store.
* :mod:`~firefly_memory.cli.options`: ``@store_options``, which gives the function ``where``; ``@json_option``,
  ``@yes_option``, ``@dry_run_option`` and ``@quiet_option``. These may also stand before the name of the command.
* :mod:`~firefly_memory.cli.output`: ``show`` prints lines or, with ``--json``, an object; ``say`` speaks to people on
  the standard error; ``in_colour`` respects ``NO_COLOR`` and pipes.
* :mod:`~firefly_memory.cli.tables`: ``show_table``, which fits the terminal.
* :mod:`~firefly_memory.cli.progress`: ``progress_bar``, for what takes a while.
* :mod:`~firefly_memory.cli.consent`: ``require_consent``, before anything is lost.
* :mod:`~firefly_memory.cli.text`: contents are data; all of the above write out their control characters.

A command raises the errors of :mod:`firefly_memory.errors`; the exit code follows from the error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from firefly_memory import likely_names
from firefly_memory.cli.exits import INTERRUPTED, Exit, exit_of
from firefly_memory.cli.group import NAME, Commands
from firefly_memory.cli.invocation import Invocation
from firefly_memory.cli.output import in_colour, say
from firefly_memory.cli.text import Shown, printable
from firefly_memory.errors import FireflyMemoryError

COMPLETION = "_FIREFLY_MEMORY_COMPLETE"
"""The variable by which the script of a shell asks for completions."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; what it ends with is in :class:`Exit`. Errors are one line.

    ``SystemExit`` after ``--help`` and ``--version``, and if the command line cannot be read.
    """
    if arguments is None and COMPLETION in os.environ:
        return _completions(os.environ[COMPLETION])
    invocation = Invocation()
    try:
        return int(_run(sys.argv[1:] if arguments is None else [*arguments], invocation) or Exit.DONE)
    except click.exceptions.Exit as ended:
        raise SystemExit(ended.exit_code) from None
    except click.UsageError as error:
        _explain(_in_words(error), NAME if error.ctx is None else error.ctx.command_path)
        raise SystemExit(Exit.USAGE) from None
    except FireflyMemoryError as error:
        return _failed(invocation, invocation.advised(str(error)), exit_of(error))
    except BrokenPipeError:
        sys.stderr.close()  # or Python complains once more when it ends
        return Exit.FAILED
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        return _failed(invocation, f"{file}{error.strerror or error}", Exit.FAILED)
    except KeyboardInterrupt:
        _explain("interrupted")
        return INTERRUPTED


def _run(arguments: list[str], invocation: Invocation) -> Any:
    commands = Commands()
    with commands.make_context(NAME, arguments, obj=invocation) as ctx:
        return commands.invoke(ctx)


def _completions(instruction: str) -> int:
    from click.shell_completion import shell_complete

    return shell_complete(Commands(), {"obj": Invocation()}, NAME, COMPLETION, instruction)


def _in_words(error: click.UsageError) -> str:
    help_of = "" if error.ctx is None else f"; see `{error.ctx.command_path} --help`"
    if isinstance(error, click.NoSuchOption):  # each version of click has other words for it
        meant = _option_meant(error)
        similar = "" if meant is None else f" (did you mean {meant}?)"
        return f"there is no option {error.option_name}{similar}{help_of}"
    return error.format_message().rstrip(".") + help_of


def _option_meant(error: click.NoSuchOption) -> str | None:
    """An option that the command has."""
    if error.ctx is None:
        return None
    options = {name for param in error.ctx.command.get_params(error.ctx) for name in param.opts}
    meant = likely_names.meant(error.option_name, options, likely_names.OPTIONS)
    return meant if meant in options else None


def _failed(invocation: Invocation, message: str, code: Exit) -> int:
    if invocation.json:
        print(json.dumps({"error": message, "exit_code": int(code)}))
    _explain(message)
    return code


def _explain(message: str, name: str = NAME) -> None:
    say(Shown(f"{in_colour(f'{name}:', 'red', sys.stderr)} {printable(message)}"))
