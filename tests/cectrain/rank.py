"""The program of each rank in test_labelled.py: a run, the same call again, a stopped run."""

import faulthandler
import hashlib
import json
import os
import sys
from pathlib import Path

HELD = []


def keeping(made):
    """Wrap `train` so that it keeps this rank's weights at the end."""

    def trained(self, **named):
        found = made(self, **named)
        state = self.accelerator.unwrap_model(self.model).state_dict()
        HELD.append({name: x.detach().clone() for name, x in state.items()})
        return found

    return trained


def digest(state):
    """Return a digest of the tensors by name; tied ones count once."""
    total = hashlib.sha256()
    for name in sorted(set(state) - {"lm_head.weight"}):
        total.update(name.encode() + state[name].float().numpy().tobytes())
    return total.hexdigest()


def main(data, out, settings):
    # Here, and not above: the search for doctests imports this file, too, whatever is installed.
    import torch
    from safetensors.torch import load_file

    from cectrain import config
    from cectrain.reward import diagnosis
    from cectrain.run import trainer
    from cectrain.train import train

    rank = os.environ["RANK"]
    torch.set_num_threads(1)
    faulthandler.dump_traceback_later(240, exit=True)  # where it waits, if it waits for ever
    trainer.GroupTrainer.train = keeping(trainer.GroupTrainer.train)
    if rank == "1":  # constants are rank 0's: another rank does not choose
        del diagnosis.diagnose
    out, told = Path(out), config.load("exact-match", settings)
    first = train(Path(data), out / "run", told)
    again = train(Path(data), out / "run", told)
    (held,) = HELD
    found = {
        "same": first == again, "told": bool(first), "held": digest(held),
        "written": digest(load_file(out / "run" / "model" / "model.safetensors")),
        "batches": first.get("ppo_batches"),
    }  # fmt: skip
    (out / f"rank-{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
