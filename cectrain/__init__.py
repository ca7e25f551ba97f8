"""Training of Chinese spelling correctors by supervised steps and PPO on cecdata's pairs."""
