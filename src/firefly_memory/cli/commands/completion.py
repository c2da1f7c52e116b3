"""``firefly-memory completion``."""

from __future__ import annotations

import click

from firefly_memory.cli.command import argument, command


@command(
    "Print the script that completes commands, options and files in your shell. bash needs version 4.4 or newer.",
    examples=[
        'eval "$(firefly-memory completion bash)"    # in ~/.bashrc',
        'eval "$(firefly-memory completion zsh)"     # in ~/.zshrc, after compinit',
        "firefly-memory completion fish | source     # in ~/.config/fish/config.fish",
    ],
)
@argument("shell", "the shell that you use", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    from click.shell_completion import ShellComplete, get_completion_class

    from firefly_memory.cli import COMPLETION
    from firefly_memory.cli.group import NAME, Commands

    kind = get_completion_class(shell)
    assert kind is not None
    print(ShellComplete.source(kind(Commands(), {}, NAME, COMPLETION)))  # bash's own form of it starts bash
