"""Train by supervised steps."""
