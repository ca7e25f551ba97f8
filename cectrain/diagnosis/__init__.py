"""Measure what a reward can teach before a run."""
