"""What the toolkit's claims rest on: studies, evidence, pretraining, the paper's figures."""
