"""The default corrector of `cectrain correct`: the noisy channel and a policy together."""

from __future__ import annotations

from dataclasses import dataclass

from cecbench.systems.channel import ChannelOptions, ChannelSystem
from cecbench.systems.kind import Kind
from cecbench.systems.options import option
from cectrain.corrector import loading
from cectrain.corrector.combined.open import COMBINED, open_combined
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.folder import BUILTIN, model_folder


@dataclass(frozen=True)
class CombinedOptions(ChannelOptions):
    """The options of the channel, and the policy that votes."""

    voter: str = option(BUILTIN, "Policy that votes: builtin, or a folder of a run or of a model.")


class CombinedSystem(ChannelSystem):
    """Answers with the corrections of the channel and the policy together."""

    name = COMBINED

    def __init__(self, options: CombinedOptions) -> None:
        name = f"{COMBINED}:{options.voter}"
        proposer = open_combined(name, options.lm, options.confidence or None)
        self._corrector = Corrector(proposer)
        self.identity = {
            **proposer.channel.identity,
            "kind": COMBINED,
            **loading.checkpoint_identity(model_folder(options.voter) or "", None),
            "least": proposer.least,
            **{f"weight_{name}": value for name, value in proposer.weights._asdict().items()},
        }


KIND = Kind(
    COMBINED,
    "the channel and a policy together, as `cectrain correct` asks them",
    CombinedOptions,
    lambda _, options, __: CombinedSystem(options),
    recorded=False,
)
