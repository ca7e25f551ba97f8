"""The noisy channel and a policy together: the channel names candidates, the policy votes."""
