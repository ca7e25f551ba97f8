"""Training of a Chinese spelling corrector by PPO with the cluster-consensus reward."""
