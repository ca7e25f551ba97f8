"""`completion`, a command of each of the three tools: a script for a shell's completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that lets SHELL complete the commands and options of this tool.

    \b
    eval "$(cecdata completion bash)"                       in ~/.bashrc
    eval "$(cectrain completion zsh)"                       in ~/.zshrc, after compinit
    cecbench completion fish > ~/.config/fish/completions/cecbench.fish
    """
    root = context.find_root()
    script = get_completion_class(shell)
    assert script is not None
    name = str(root.info_name)
    click.echo(script(root.command, {}, name, f"_{name.upper()}_COMPLETE").source())
