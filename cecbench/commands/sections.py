"""Commands whose help shows their options in sections."""

from __future__ import annotations

from collections.abc import Sequence

import click


class SectionOption(click.Option):
    """An option that the help shows under a title of its own."""

    def __init__(self, declarations: Sequence[str], *, section: str, **settings: object) -> None:
        super().__init__(declarations, **settings)  # type: ignore[arg-type]  # click's own settings
        self.section = section


class SectionCommand(click.Command):
    """A command that groups the options of its help by their sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections; options without one come first."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                title = param.section if isinstance(param, SectionOption) else "Options"
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)
